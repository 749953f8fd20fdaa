//! A real server that is too old: ClickHouse 18.16.1, as Debian packages it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::server::unused_port;

/// It ends with the test.
pub(crate) struct OldServer {
    process: Child,
    pub(crate) port: u16,
    _directory: tempfile::TempDir,
}

impl OldServer {
    /// Starts the server that was unpacked to `root`.
    pub(crate) fn start(root: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = unused_port();
        let data = directory.path().display();
        let config = format!(
            "<yandex><logger><level>information</level><console>1</console></logger>\
             <http_port>{port}</http_port><tcp_port>{}</tcp_port><listen_host>127.0.0.1</listen_host>\
             <path>{data}/</path><tmp_path>{data}/tmp/</tmp_path><users_config>users.xml</users_config>\
             <default_profile>default</default_profile><default_database>default</default_database>\
             <mark_cache_size>1000000</mark_cache_size></yandex>",
            unused_port()
        );
        let users = "<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default>\
                     <password>old</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>\
                     <quota>default</quota></default></users></yandex>";
        std::fs::write(directory.path().join("config.xml"), config).unwrap();
        std::fs::write(directory.path().join("users.xml"), users).unwrap();
        let libraries =
            ["usr/lib", "lib"].map(|lib| root.join(lib).join(format!("{}-linux-gnu", std::env::consts::ARCH)));
        let mut process = Command::new(root.join("usr/sbin/clickhouse-server"))
            .arg(format!("--config-file={data}/config.xml"))
            .current_dir(directory.path())
            .env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let ready = log.find(|line| line.contains("Ready for connections"));
        assert!(ready.is_some(), "the old server ended: {:?}", process.wait());
        // Its log goes on; nobody reading it would stop the server.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, port, _directory: directory }
    }
}

impl Drop for OldServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
