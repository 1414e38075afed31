use super::*;

fn parse(arguments: &[&str]) -> Result<Options, OptionProblem> {
    Options::parse(&arguments.iter().map(|argument| argument.to_string()).collect::<Vec<_>>())
}

fn refusal(arguments: &[&str]) -> String {
    parse(arguments).unwrap_err().to_string()
}

#[test]
fn dashes_and_underscores_are_the_same_and_values_may_follow_a_space() {
    let options = parse(&[
        "--key-buffer-size=64M",
        "--max_connections",
        "300",
        "--skip-grant-tables",
        "--datadir",
        "/d",
    ])
    .unwrap();
    let values = options.globals.values();
    assert_eq!(values.unsigned("key_buffer_size"), 64 << 20);
    assert_eq!(values.unsigned("max_connections"), 300);
    assert!(options.skip_grant_tables());
    assert_eq!(options.datadir(), Path::new("/d"));
    assert_eq!(options.socket(), Path::new("/d/latchwork.sock"));
    assert_eq!(options.tcp(), None, "without accounts there is no TCP");
    assert_eq!(parse(&[]).unwrap().tcp(), Some(("127.0.0.1".to_string(), 3306)));
    assert_eq!(parse(&["--skip-networking"]).unwrap().tcp(), None);
}

#[test]
fn the_published_studys_options_are_taken_and_those_without_effect_are_said_once() {
    let options = parse(&[
        "--no-defaults",
        "--key_buffer_size=32M",
        "--max_connections=256",
        "--query_cache_size=0",
        "--query_cache_type=0",
        "--skip-grant-tables",
        "--socket=/tmp/s",
        "--table_open_cache=512",
        "--thread_cache=512",
        "--thread_cache_size=512",
        "--key_cache_segments=64",
        "--tmpdir=/tmp",
        "--log-error=/tmp/log",
    ])
    .unwrap();
    let values = options.globals.values();
    assert_eq!(values.unsigned("key_buffer_size"), 32 << 20);
    assert_eq!(values.unsigned("key_cache_segments"), 64);
    assert_eq!(values.unsigned("thread_cache_size"), 512);
    for name in ["query_cache_size", "query_cache_type", "table_open_cache", "thread_cache_size"] {
        let mentions = options
            .remarks
            .iter()
            .filter(|remark| remark.contains(&format!("'--{name}'")) && remark.contains("no effect"));
        assert_eq!(mentions.count(), 1, "{name}: {:?}", options.remarks);
    }
    assert!(!options.remarks.iter().any(|remark| remark.contains("'--tmpdir'")), "it has an effect");
}

#[test]
fn an_unknown_option_is_refused_with_the_closest_name() {
    assert!(refusal(&["--key_bufer_size=1M"]).contains("Did you mean '--key_buffer_size'?"));
    assert!(refusal(&["--no-such-option-at-all"]).contains("no-such-option-at-all"));
    assert!(refusal(&["stray"]).contains("stray"));
}

#[test]
fn a_wrong_value_is_refused_by_name() {
    let refused = refusal(&["--key_buffer_size=banana"]);
    assert!(refused.contains("key_buffer_size") && refused.contains("banana"), "{refused}");
    assert!(refusal(&["--port=99999999"]).contains("port"));
    assert!(refusal(&["--key_buffer_size"]).contains("key_buffer_size"));
    assert!(refusal(&["--config"]).contains("config"));
}

#[test]
fn the_command_line_overrides_the_file_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("my.cnf");
    std::fs::write(&config, "[mysqld]\nkey_buffer_size=16M\nkey-cache-segments = 4\n").unwrap();
    let config = config.to_str().unwrap();
    let options = parse(&["--key_buffer_size=8M", "--config", config]).unwrap();
    assert_eq!(options.globals.values().unsigned("key_buffer_size"), 8 << 20);
    assert_eq!(options.globals.values().unsigned("key_cache_segments"), 4);
}

#[test]
fn a_mistake_in_a_file_is_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("my.cnf");
    std::fs::write(&config, "[mysqld]\n# fine\nno_such_option=3\n").unwrap();
    let refused = refusal(&["--config", config.to_str().unwrap()]);
    assert!(refused.contains("my.cnf, line 3") && refused.contains("no_such_option"), "{refused}");
    assert!(refusal(&["--config=/nonexistent/my.cnf"]).contains("/nonexistent/my.cnf"));
}

#[test]
fn the_last_of_a_size_and_its_synonym_wins() {
    let size = |arguments: &[&str]| parse(arguments).unwrap().globals.values().unsigned("key_buffer_size");
    assert_eq!(size(&["--key_buffer_size=24M", "--innodb-buffer-pool-size=32M"]), 32 << 20);
    assert_eq!(size(&["--innodb-buffer-pool-size=32M", "--key_buffer_size=24M"]), 24 << 20);
}

#[test]
fn a_preset_sets_what_is_not_said_otherwise() {
    let settings = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string()).collect();
        let values = Options::parse(&arguments).expect("options").globals.values();
        ["latch_implementation", "use_sys_malloc", "malloc_lib", "thread_concurrency", "key_cache_hit_path"]
            .map(|name| values.text(name))
    };
    assert_eq!(settings(&[]), ["direct", "1", "system", "0", "optimistic"]);
    assert_eq!(settings(&["--preset=base"]), ["wait_array", "0", "system", "0", "locked"]);
    assert_eq!(settings(&["--preset", "tc4"]), ["wait_array", "0", "system", "4", "locked"]);
    assert_eq!(settings(&["--preset=smpfix"]), ["direct", "1", "tcmalloc", "0", "locked"]);
    assert_eq!(settings(&["--preset=notcmalloc"]), ["direct", "1", "system", "0", "locked"]);
    assert_eq!(settings(&["--preset=onlymalloc"]), ["wait_array", "1", "system", "0", "locked"]);
    let mixed = ["--innodb_thread_concurrency=8", "--malloc-lib=system", "--preset=smpfix"];
    assert_eq!(settings(&mixed), ["direct", "1", "system", "8", "locked"]);
    let unknown = Options::parse(&["--preset=fastest".to_string()]).expect_err("no such preset").to_string();
    assert!(unknown.contains("base, tc4, smpfix, notcmalloc, onlymalloc"), "{unknown}");
}

#[test]
fn the_settings_of_the_published_smp_servers_are_taken() {
    let options = parse(&[
        "--innodb_file_per_table",
        "--max_heap_table_size=64M",
        "--tmp_table_size=64M",
        "--innodb_buffer_pool_size=1G",
        "--innodb_log_file_size=1300M",
        "--innodb_log_files_in_group=2",
        "--innodb_log_buffer_size=200M",
        "--innodb_flush_log_at_trx_commit=2",
        "--innodb_read_io_threads=4",
        "--innodb_write_io_threads=4",
        "--innodb_thread_concurrency=0",
        "--innodb_flush_method=nosync",
        "--innodb_additional_mem_pool_size=16M",
        "--innodb_support_xa=0",
        "--innodb_doublewrite=0",
        "--table_cache=2000",
        "--table_open_cache=2000",
        "--query_cache_size=0",
        "--max_connections=500",
        "--thread_cache_size=100",
        "--log-bin=mysql-bin",
        "--sync_binlog=0",
        "--binlog_format=STATEMENT",
        "--server-id=1",
    ])
    .unwrap();
    let values = options.globals.values();
    assert_eq!(values.unsigned("innodb_log_file_size"), 1300 << 20);
    assert_eq!(values.unsigned("innodb_log_buffer_size"), 200 << 20);
    assert_eq!(values.unsigned("key_buffer_size"), 1 << 30);
    assert_eq!(values.text("innodb_flush_method"), "nosync");
    assert_eq!(values.unsigned("max_heap_table_size"), 64 << 20);
    assert!(!values.boolean("log_bin"));
    let no_binary_log = "option '--log_bin' is accepted but has no effect: there is no binary log";
    assert!(options.remarks.iter().any(|remark| remark == no_binary_log), "{:?}", options.remarks);
    assert!(!parse(&["--log-bin"]).unwrap().globals.values().boolean("log_bin"));
    for method in ["O_DIRECT", "fsync", "O_DSYNC"] {
        let option = format!("--innodb_flush_method={method}");
        assert_eq!(parse(&[&option]).unwrap().globals.values().text("innodb_flush_method"), method);
    }
}

/// The help is written by hand; the options are in two tables.
#[test]
fn the_help_names_options_that_exist_with_the_values_that_they_have() {
    let help = crate::command_line::SERVE_HELP;
    let values = Options::parse(&[]).unwrap().globals;
    let values = values.values();
    let mut checked = 0;
    for line in help.lines().filter_map(|line| line.strip_prefix("  --")) {
        let name = line.split([' ', '=']).next().unwrap();
        let name = canonical(name.strip_prefix("NAME.").unwrap_or(name));
        assert!(Other::named(&name).is_some() || variables::find(&name).is_some(), "--{name}");
        // A value in parentheses at the end of the line, if it is a number.
        let default = line.rsplit_once('(').and_then(|(_, end)| end.strip_suffix(')')).map(str::trim);
        let (Some(default), Some(variable)) = (default, variables::find(&name)) else { continue };
        let bytes = default.strip_suffix('M').map(|number| (number, 1 << 20)).unwrap_or((default, 1));
        if let Ok(number) = bytes.0.parse::<u64>() {
            assert_eq!(values.unsigned(variable.definition().name), number * bytes.1, "--{name}");
            checked += 1;
        }
    }
    assert!(checked >= 4, "defaults that were compared: {checked}");
}
