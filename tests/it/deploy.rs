//! The files of `deploy/`: what they name is there.

use std::collections::BTreeSet;
use std::process::Command;

use querent_flight::config::KEYS;
use serde_json::Value;

/// The root of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(querent_tests::package_folder().join("..").join(path)).unwrap()
}

/// Every text of a document.
fn texts<'a>(document: &'a Value, found: &mut Vec<&'a str>) {
    match document {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !(char.is_ascii_lowercase() || char == '_')).filter(|word| word.starts_with("querent_"))
}

/// Nothing here runs Homebrew; the text has each archive with its own sum, and its blocks end.
#[test]
fn the_formula_has_the_sums_of_the_archives() {
    let folder = tempfile::tempdir().unwrap();
    // Each archive holds its own name, whose sum is this.
    let targets = [
        ("aarch64-apple-darwin", "602526fe5d0720f8fb8f60272c924a754eb90c461381908e5d8a5f04f6e504c0"),
        ("aarch64-unknown-linux-gnu", "86bf552cb29f61118330fb817bc3819ddbade898c26ec8c0a3c825f4bc5e2e27"),
        ("x86_64-unknown-linux-gnu", "1bb87e07be9e52fc0dca53a1c0718fac23e8b4202b9c346e12f075762507a544"),
    ];
    let script = querent_tests::package_folder().join("../scripts/formula.sh");
    let run = || Command::new(&script).arg(folder.path()).arg("https://downloads.example/v1/").output().unwrap();
    assert!(!run().status.success(), "an archive is missing");
    for (target, _) in targets {
        std::fs::write(folder.path().join(format!("querent-{target}.tar.gz")), target).unwrap();
    }
    let done = run();
    let formula = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for (target, sum) in targets {
        let lines = format!("url \"https://downloads.example/v1/querent-{target}.tar.gz\"\n      sha256 \"{sum}\"\n");
        assert!(formula.contains(&lines), "{target}: {formula}");
    }
    let words: Vec<&str> = formula.split_whitespace().collect();
    let begun = words.iter().filter(|word| ["class", "def", "do"].contains(word)).count();
    assert_eq!(begun, words.iter().filter(|word| **word == "end").count(), "{formula}");
    assert!(formula.contains(&format!("version \"{}\"", env!("CARGO_PKG_VERSION"))), "{formula}");
}

#[test]
fn the_dashboard_shows_every_metric_by_its_name() {
    let source = read("flight/src/metrics.rs");
    let described: BTreeSet<&str> =
        source.lines().filter(|line| line.trim_start().starts_with("describe_")).flat_map(metrics_in).collect();
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/querent.json")).unwrap();
    let mut all = Vec::new();
    texts(&dashboard["panels"], &mut all);
    let shown: BTreeSet<&str> =
        all.into_iter().flat_map(metrics_in).map(|name| name.trim_end_matches("_bucket")).collect();
    assert_eq!(shown, described, "deploy/grafana/querent.json and flight/src/metrics.rs");
    let ids: BTreeSet<i64> = dashboard["panels"].as_array().unwrap().iter().filter_map(|p| p["id"].as_i64()).collect();
    assert_eq!(ids.len(), dashboard["panels"].as_array().unwrap().len(), "each panel has an id of its own");
}

/// Nothing here runs these: each is at least what its schema asks for.
#[test]
fn files_for_other_programs_are_of_their_schemas() {
    for (schema, file) in [
        ("vendor.github-workflows", ".github/workflows/release.yml"),
        ("vendor.compose-spec", "deploy/compose.yaml"),
        ("vendor.compose-spec", "deploy/cluster.yaml"),
    ] {
        let mut check = querent_tests::check_program("check-jsonschema");
        check.args(["--builtin-schema", schema, file]).current_dir(querent_tests::package_folder().join(".."));
        let done = check.output().unwrap();
        let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(done.status.success(), "{file}: {said}");
    }
}

/// systemd starts a unit five times in ten seconds, and then never again, unless it says otherwise.
#[test]
fn the_service_is_started_until_it_runs() {
    let unit = read("deploy/querent.service");
    let (head, service) = unit.split_once("[Service]").unwrap();
    assert!(head.contains("\nStartLimitIntervalSec=0\n"), "{head}");
    for line in ["Restart=on-failure", "RestartSec=5", "RestartPreventExitStatus=2", "LimitNOFILE=65536"] {
        assert!(service.lines().any(|found| found == line), "{line}");
    }
}

const CHART: &str = "deploy/helm/querent";

/// The files of the chart that are templates.
fn templates() -> Vec<(String, String)> {
    ["_helpers.tpl", "coordinator.yaml", "secret.yaml", "workers.yaml"]
        .map(|name| (name.to_owned(), read(&format!("{CHART}/templates/{name}"))))
        .into()
}

/// The paths of the keys of a YAML file that has maps only, and lists of texts in them.
fn paths_of(yaml: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut above: Vec<(usize, String)> = Vec::new();
    for line in yaml.lines() {
        let text = line.trim_start();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let indent = line.len() - text.len();
        let (key, _) = text.split_once(':').unwrap_or_else(|| panic!("no key: {line}"));
        above.retain(|(outer, _)| *outer < indent);
        above.push((indent, key.to_owned()));
        paths.insert(above.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>().join("."));
    }
    paths
}

/// Nothing here renders the chart; what its templates name is there, and their blocks end.
#[test]
fn the_chart_names_what_is_there() {
    let values = paths_of(&read(&format!("{CHART}/values.yaml")));
    let templates = templates();
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '.' || char == '_';
    let mut used = BTreeSet::new();
    for (name, text) in &templates {
        for part in text.split(".Values.").skip(1) {
            let path: String = part.chars().take_while(|char| is_name(*char)).collect();
            assert!(values.contains(&path), "{name} names .Values.{path}, which values.yaml does not have");
            used.insert(path);
        }
        let begun = ["if ", "range ", "define ", "with "];
        let actions: Vec<&str> = text.split("{{").skip(1).filter_map(|part| part.split("}}").next()).collect();
        let actions: Vec<&str> = actions.iter().map(|action| action.trim_matches(['-', ' '])).collect();
        let opened = actions.iter().filter(|action| begun.iter().any(|word| action.starts_with(word))).count();
        let closed = actions.iter().filter(|action| **action == "end").count();
        assert_eq!(opened, closed, "{name}");
        for part in text.split("include \"").skip(1) {
            let included = part.split('"').next().unwrap_or_default();
            let defined = format!("define \"{included}\"");
            assert!(templates.iter().any(|(_, text)| text.contains(&defined)), "{name} includes {included}");
        }
    }
    let is_used = |value: &String| used.iter().any(|path| value == path || value.starts_with(&format!("{path}.")));
    let leaves = values.iter().filter(|value| !values.iter().any(|other| other.starts_with(&format!("{value}."))));
    let unused: Vec<&String> = leaves.filter(|value| !is_used(value)).collect();
    assert!(unused.is_empty(), "no template has {unused:?}");
}

/// Each coordinator says where the others reach it: Kubernetes fills in the name of the pod, which a headless service resolves.
#[test]
fn each_coordinator_of_the_chart_has_an_address() {
    let text = read(&format!("{CHART}/templates/coordinator.yaml"));
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("coordinator.yaml has no {part}"));
    // A variable is filled in from those before it.
    assert!(at("- name: POD_NAME") < at("- name: QUERENT_CLUSTER_ADDRESS"));
    assert!(at("- name: POD_NAME") < at("fieldPath: metadata.name"));
    at("\"http://$(POD_NAME).{{ $name }}-servers.{{ .Release.Namespace }}.svc:{{ .Values.coordinator.port }}\"");
    at("serviceName: {{ $name }}-servers");
    let services = text.split("\n---\n").filter(|part| part.contains("kind: Service\n"));
    let headless: Vec<&str> = services.filter(|part| part.contains("clusterIP: None")).collect();
    assert_eq!(headless.len(), 1);
    assert!(headless[0].contains("name: {{ $name }}-servers\n"), "{}", headless[0]);
}

/// Pods are let in where Kubernetes enforces its restricted profile.
#[test]
fn pods_of_the_chart_have_no_privileges() {
    for name in ["coordinator", "workers"] {
        let text = read(&format!("{CHART}/templates/{name}.yaml"));
        for part in [
            "runAsNonRoot: true\n",
            "seccompProfile:\n          type: RuntimeDefault\n",
            "allowPrivilegeEscalation: false\n",
            "capabilities:\n              drop: [\"ALL\"]\n",
        ] {
            assert!(text.contains(part), "{name} has no {part}");
        }
    }
}

/// A full volume ends a worker's pod, and keeps a coordinator from writing its catalog.
#[test]
fn what_servers_keep_on_disk_fits_into_their_volumes() {
    let values = read(&format!("{CHART}/values.yaml"));
    for (section, volume) in [("coordinator", "storage"), ("workers", "scratch")] {
        let lines = values.lines().skip_while(|line| *line != format!("{section}:")).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| line.is_empty() || line.starts_with(' ')).collect();
        let gibibytes = |key: &str| -> u64 {
            let value = lines.iter().find_map(|line| line.strip_prefix(&format!("  {key}: ")));
            value.unwrap_or_else(|| panic!("{section} has no {key}")).trim_end_matches(['G', 'i', 'B']).parse().unwrap()
        };
        assert!(gibibytes("fileCache") + gibibytes("spill") < gibibytes(volume), "{section}");
        let text = read(&format!("{CHART}/templates/{section}.yaml"));
        for (variable, key) in [("QUERENT_QUERY_FILE_CACHE", "fileCache"), ("QUERENT_QUERY_SPILL", "spill")] {
            let set = format!("- name: {variable}\n              value: {{{{ .Values.{section}.{key} | quote }}}}\n");
            assert!(text.contains(&set), "{section} has no {variable}");
        }
    }
}

/// The variables that servers are started with are those that they read.
#[test]
fn variables_of_deployments_are_settings() {
    let known: BTreeSet<&str> = KEYS.iter().flat_map(|key| key.environment).copied().collect();
    let files = ["deploy/cluster.yaml", "deploy/compose.yaml", "deploy/Containerfile", "deploy/querent.service"];
    let files = files.map(|path| (path.to_owned(), read(path))).into_iter().chain(templates());
    for (name, text) in files {
        let words = text.split(|char: char| !(char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_'));
        for word in words.filter(|word| word.starts_with("QUERENT_") && *word != "QUERENT_TOKEN") {
            assert!(known.contains(word), "{name} has {word}, which no setting reads");
        }
    }
}

/// What stops a server by force waits until it has ended what it has begun, which takes it 30 s at most, and where others choose
/// whom they ask, it tells them before.
#[test]
fn servers_have_the_time_to_stop() {
    for file in ["deploy/cluster.yaml", "deploy/compose.yaml"] {
        let text = read(file);
        let built = text.matches("dockerfile: deploy/Containerfile").count();
        assert!(built > 0, "{file}");
        assert_eq!(text.matches("stop_grace_period: 45s").count(), built, "{file}");
    }
    for name in ["coordinator", "workers"] {
        let text = read(&format!("{CHART}/templates/{name}.yaml"));
        assert!(text.contains("terminationGracePeriodSeconds: 60\n"), "{name}");
        assert!(text.contains("- name: QUERENT_SHUTDOWN_DELAY\n              value: 5s\n"), "{name}");
    }
}

/// Where Ollama runs beside the server, the model that the server asks it for is downloaded.
#[test]
fn deployments_with_ollama_download_its_model() {
    for file in ["deploy/cluster.yaml", "deploy/compose.yaml"] {
        let text = read(file);
        let after = |part: &str| text.split_once(part).unwrap_or_else(|| panic!("{file} has no {part}")).1;
        let asked = after("QUERENT_AGENT_MODEL: \"").split_once('"').unwrap().0;
        assert!(after("QUERENT_AGENT_OLLAMA_HOST: ").starts_with("http://ollama:11434\n"), "{file}");
        assert!(text.contains(&format!("entrypoint: [\"ollama\", \"pull\", \"{asked}\"]")), "{file}: {asked}");
    }
}
