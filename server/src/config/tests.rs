//! Tests of whole configurations: each field wrong once, the example of the documentation, tokens and exposure.

use super::*;
use lisp_runtime::Amounts;
use lisp_runtime::tools::Effect;

const DOCS: &str = include_str!("../../../docs/service.md");

fn environment(name: &str) -> Option<String> {
    match name {
        "CRM_TOKEN" | "PETS_KEY" | "FILES_TOKEN" | "ISSUES_TOKEN" => Some(format!("value-of-{name}")),
        "LINES" => Some("a\nb".to_owned()),
        "ZERO" => Some("a\0b".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    let base = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"));
    Config::of(text, "service.toml", base, &environment)
}

fn example() -> &'static str {
    DOCS.split("```toml\n").nth(1).unwrap().split("```").next().unwrap()
}

#[test]
fn an_empty_file_is_the_default() {
    let empty = Config::parse("", "empty.toml").unwrap();
    assert_eq!(empty, Config::default());
    assert_eq!(empty.listen.to_string(), "127.0.0.1:7117");
    assert_eq!((empty.isolation, empty.limits()), (Isolation::Process, Limits::default()));
}

#[test]
fn the_example_of_the_documentation_is_read() {
    let config = parse(example()).unwrap();
    assert_eq!((config.service.concurrency, config.service.queue), (64, 256));
    assert_eq!(config.service.durability, Durability::Machine);
    assert_eq!(config.tls.as_ref().map(|tls| tls.key.ends_with("fixtures/key.pem")), Some(true));
    let shop = config.tenant_of("bob").unwrap();
    assert_eq!(
        (shop.name.as_str(), shop.burst, shop.sees("pets__getPet"), shop.sees("refund")),
        ("shop", 100, true, false)
    );
    let amounts = Amounts::new().with_runs(100_000).with_fuel(1_000_000_000_000);
    assert_eq!(shop.budget.map(|budget| (budget.amounts, budget.refill_seconds)), Some((amounts, Some(86_400))));
    assert_eq!(config.approver_of("carol").map(|tenant| tenant.name.as_str()), Some("shop"));
    let office = config.tenant_named("back-office").unwrap();
    assert_eq!((shop.has_approvers(), office.has_approvers(), config.asks()), (true, false, true));
    let ceilings = [shop, office].map(|tenant| config.ceiling_of(tenant));
    assert_eq!(ceilings.map(|ceiling| ceiling.timeout_ms), [120_000, 60_000]);
    assert_eq!(ceilings.map(|ceiling| ceiling.tool_calls), [200, 200]);
    let refund = &config.tools["refund"];
    assert_eq!((refund.method, refund.calls.effect, refund.policy), (Method::Post, Some(Effect::Write), Decision::Ask));
    assert!(refund.input.contains("amount"));
    assert_eq!(refund.headers[0].value.expose(), "Bearer value-of-CRM_TOKEN");
    assert_eq!(config.openapi["pets"].policies["deletePet"], Decision::Deny);
    let McpConnection::Command { program, env, .. } = &config.mcp["files"].connection else { panic!() };
    assert_eq!((program.as_str(), env[0].1.expose()), ("mcp-server-files", "value-of-FILES_TOKEN"));
    assert!(!format!("{config:?}").contains("value-of-"));
}

#[test]
fn the_table_of_the_documentation_has_every_key() {
    for (name, range) in Service::RANGES {
        let row = DOCS.lines().find(|line| line.starts_with(&format!("| `[service]` `{name}` |"))).expect(name);
        assert!(row.contains(&format!("| {} to {} |", range.start(), range.end())), "{row}");
        let wrong = |value: u64| parse(&format!("[service]\n{name} = {value}")).unwrap_err();
        let error = wrong(range.end() + 1);
        assert_eq!((error.at, error.field), (Some((2, name.len() + 4)), format!("service.{name}")));
        assert!(error.message.contains(&range.end().to_string()));
        if *range.start() > 0 {
            assert!(wrong(range.start() - 1).message.contains(&format!("must be {}", range.start())));
        }
        parse(&format!("[service]\n{name} = {}", range.start())).unwrap();
        parse(&format!("[service]\n{name} = {}", range.end())).unwrap();
        // The default is the value in the table.
        if *name != "concurrency" {
            let usual = row.split('|').nth(3).unwrap().trim();
            let same = parse(&format!("[service]\n{name} = {usual}")).unwrap();
            assert_eq!(same, parse("").unwrap(), "{row}");
        }
    }
    let keys = include_str!("file.rs").lines().filter_map(|line| line.trim().strip_prefix("pub(super) "));
    for key in keys.filter_map(|line| Some(line.split_once(':')?.0)).filter(|key| !key.contains(' ')) {
        // The amounts of a budget, and the tables of the file.
        assert!(DOCS.contains(&format!("`{key}`")) || DOCS.contains(&format!("[{key}")), "{key}");
    }
}

/// A configuration, line and column, field, and parts of the message and the next step.
const WRONG: &[(&str, (usize, usize), &str, &str)] = &[
    ("listen = 7117", (1, 10), "listen", "expected a string"),
    ("listen = \"7117\"", (1, 10), "listen", "127.0.0.1:7117"),
    ("listen = \"localhost:80\"", (1, 10), "listen", "not an address"),
    ("\n  store = []", (2, 11), "store", "expected a string"),
    ("store = ", (1, 9), "", "write a value after `=`"),
    ("isolation = \"thread\"", (1, 13), "isolation", "`in-process`"),
    ("json_keys = \"symbols\"", (1, 13), "json_keys", "`keywords`"),
    ("check = \"strict\"", (1, 9), "check", "`refuse`"),
    ("limit = 1", (1, 1), "limit", "`limits`"),
    ("[limits]\ntimeout = 1", (2, 1), "limits.timeout", "`timeout_ms`"),
    ("[ceiling]\nfuel = \"much\"", (2, 8), "ceiling.fuel", "expected a whole number"),
    (
        "[limits]\ntimeout_ms = 5000\n[ceiling]\ntimeout_ms = 100",
        (2, 14),
        "limits.timeout_ms",
        "5000 is above the ceiling, but ceiling.timeout_ms is 100, so runs would get 100",
    ),
    ("[limits]\nfuel = 0\n[ceiling]\nfuel = 100", (2, 8), "limits.fuel", "0 is no limit, but ceiling.fuel is 100, so"),
    ("[ceiling]\nfuel = -1", (2, 8), "ceiling.fuel", "-1"),
    ("[service]\nqueues = 1", (2, 1), "service.queues", "`queue`"),
    ("[service]\ndurability = \"disk\"", (2, 14), "service.durability", "`machine`"),
    ("[tls]\ncertificate = \"none.pem\"\nkey = \"key.pem\"", (2, 15), "tls.certificate", "none.pem cannot be read"),
    ("[tls]\ncertificate = \"certificate.pem\"", (1, 1), "tls", "missing field `key`"),
    ("[tls]\ncertificate = \"certificate.pem\"\nkey = \"none.pem\"", (3, 7), "tls.key", "none.pem cannot be read"),
    ("[[tenants]]\ntoken_sha256 = \"\"", (1, 1), "tenants[0]", "missing field `name`"),
    ("[[tenants]]\nname = \"a b\"", (2, 8), "tenants[0].name", "not a valid name of a tenant"),
    ("[[tenants]]\nname = \"anonymous\"", (2, 8), "tenants[0].name", "other than anonymous"),
    ("[[tenants]]\nname = \"a\"", (2, 8), "tenants[0].name", "sha256sum"),
    ("[[tenants]]\nname = \"a\"\ntoken_sha256 = \"abc\"", (3, 16), "tenants[0].token_sha256", "without the ` -`"),
    ("approver_token_sha256 = \"abc\"", (1, 25), "approver_token_sha256", "64 hex digits"),
    ("[[tenants]]\nname = \"a\"\napprover_tokens_sha256 = [\"abc\"]", (2, 8), "tenants[0].name", "no token"),
    ("[[tenants]]\nname = \"a\"\ntokens_sha256 = [\"abc\"]", (3, 17), "tenants[0].tokens_sha256", "64 hex digits"),
    ("[[tenants]]\nname = \"a\"\nconcurrency = 0", (3, 15), "tenants[0].concurrency", "1 to 100000"),
    ("[[tenants]]\nname = \"a\"\nqueue = 1000001", (3, 9), "tenants[0].queue", "0 to 1000000"),
    ("[[tenants]]\nname = \"a\"\nruns_per_second = 0.0", (3, 19), "tenants[0].runs_per_second", "0.001"),
    ("[[tenants]]\nname = \"a\"\nruns_per_second = nan", (3, 19), "tenants[0].runs_per_second", "0.001"),
    ("[[tenants]]\nname = \"a\"\nburst = 1", (3, 9), "tenants[0].burst", "runs_per_second"),
    ("[[tenants]]\nname = \"a\"\nruns_per_second = 1\nburst = 0", (4, 9), "tenants[0].burst", "1 to 1000000"),
    ("[[tenants]]\nname = \"a\"\nceiling = { fuels = 1 }", (3, 13), "tenants[0].ceiling.fuels", "`fuel`"),
    ("[[tenants]]\nname = \"a\"\ntools = [\"a*b\"]", (3, 9), "tenants[0].tools", "one * at the end"),
    ("[[tenants]]\nname = \"a\"\nbudget = {}", (3, 10), "tenants[0].budget", "counts nothing"),
    (
        "[[tenants]]\nname = \"a\"\nbudget = { runs = 1, refill_seconds = 0 }",
        (3, 39),
        "tenants[0].budget.refill_seconds",
        "1 to",
    ),
    ("[tools.a]\nmethod = \"GET\"", (1, 1), "tools.a", "missing field `url`"),
    ("[tools.a]\nurl = \"ftp://a.com/\"", (2, 7), "tools.a.url", "https://"),
    ("[tools.a]\nurl = \"https://u:p@a.com/\"", (2, 7), "tools.a.url", "user or a password"),
    ("[tools.a]\nurl = \"http://0x7f.1/\"", (2, 7), "tools.a.url", "allow_private"),
    ("[tools.a]\nurl = \"https://{host}/\"", (2, 7), "tools.a.url", "in the path only"),
    ("[tools.a]\nurl = \"https://a.com/\"\nmethod = \"get\"", (3, 10), "tools.a.method", "`GET`"),
    ("[tools.a]\nurl = \"https://a.com/\"\ndescription = 1", (3, 15), "tools.a.description", "expected a string"),
    ("[tools.a]\nurl = \"https://a.com/\"\ninput = \"x\"", (3, 9), "tools.a.input", "expected a map"),
    ("[tools.a]\nurl = \"https://a.com/\"\ninput = { maximum = inf }", (3, 9), "tools.a.input", "JSON does not have"),
    (
        "[tools.a]\nurl = \"https://a.com/\"\ninput_file = \"none.json\"",
        (3, 14),
        "tools.a.input_file",
        "none.json cannot be read",
    ),
    (
        "[tools.a]\nurl = \"https://a.com/\"\ninput = {}\ninput_file = \"x\"",
        (4, 14),
        "tools.a.input_file",
        "input is given, too",
    ),
    (
        "[tools.a]\nurl = \"https://a.com/\"\noutput = {}\noutput_file = \"x\"",
        (4, 15),
        "tools.a.output_file",
        "output is given, too",
    ),
    ("[tools.a]\nurl = \"https://a.com/\"\noutput_file = \".\"", (3, 15), "tools.a.output_file", "cannot be read"),
    ("[tools.a]\nurl = \"https://a.com/\"\neffect = \"none\"", (3, 10), "tools.a.effect", "`read`"),
    ("[tools.a]\nurl = \"https://a.com/\"\nidempotent = 1", (3, 14), "tools.a.idempotent", "expected a boolean"),
    ("[tools.a]\nurl = \"https://a.com/\"\ncached = \"yes\"", (3, 10), "tools.a.cached", "expected a boolean"),
    ("[tools.a]\nurl = \"https://a.com/\"\ntagged = \"yes\"", (3, 10), "tools.a.tagged", "expected a boolean"),
    ("[tools.a]\nurl = \"https://a.com/\"\nconcurrency = 0", (3, 15), "tools.a.concurrency", "1 to 100000"),
    ("[tools.a]\nurl = \"https://a.com/\"\nmax_calls = 1000000001", (3, 13), "tools.a.max_calls", "0 to 1000000000"),
    ("[tools.a]\nurl = \"https://a.com/\"\ncached = true\nredact = [\"x\"]", (4, 10), "tools.a.redact", "cached"),
    ("[tools.a]\nurl = \"https://a.com/\"\ntimeout_ms = 0", (3, 14), "tools.a.timeout_ms", "1 to 3600000"),
    ("[tools.a]\nurl = \"https://a.com/\"\nmax_response_bytes = 0", (3, 22), "tools.a.max_response_bytes", "1 to"),
    ("[tools.a]\nurl = \"https://a.com/\"\nheaders = { A = \"${NONE}\" }", (3, 17), "tools.a.headers.A", "set NONE"),
    ("[tools.a]\nurl = \"https://a.com/\"\nheaders = { A = \"${LINES}\" }", (3, 17), "tools.a.headers.A", "line break"),
    (
        "[tools.a]\nurl = \"https://a.com/\"\nheaders = { \"A B\" = \"x\" }",
        (3, 21),
        "tools.a.headers.A B",
        "not a valid name of a header",
    ),
    (
        "[tools.a]\nurl = \"https://a.com/\"\nheaders = { Host = \"x\" }",
        (3, 20),
        "tools.a.headers.Host",
        "sets this header itself",
    ),
    ("[tools.a]\nurl = \"https://a.com/\"\npolicy = \"maybe\"", (3, 10), "tools.a.policy", "`ask`"),
    ("[tools.a]\nurl = \"https://a.com/\"\nquestion = \"x?\"", (3, 12), "tools.a.question", "policy = \"ask\""),
    (
        "[tools.a]\nurl = \"https://a.com/\"\npolicy = \"ask\"\nquestion = \"{x?\"",
        (4, 12),
        "tools.a.question",
        "in braces",
    ),
    (
        "[tools.a]\nurl = \"https://a.com/\"\npolicy = \"ask\"\nredact = [\"x\"]\nquestion = \"{x}?\"",
        (5, 12),
        "tools.a.question",
        "redacted argument x",
    ),
    ("[tools.\"\"]\nurl = \"https://a.com/\"", (1, 8), "tools.", "1 to 200 bytes"),
    ("[openapi.a]\nfile = \"none.json\"\nbase_url = \"https://a.com\"", (2, 8), "openapi.a.file", "cannot be read"),
    ("[openapi.a]\nfile = \"pets.json\"\nbase_url = \"/v1\"", (3, 12), "openapi.a.base_url", "not a URL"),
    ("[openapi.a]\nfile = \"pets.json\"\nbase_url = \"https://a.com/?x\"", (3, 12), "openapi.a.base_url", "query"),
    (
        "[openapi.a]\nfile = \"pets.json\"\nbase_url = \"https://10.1.1.1/\"",
        (3, 12),
        "openapi.a.base_url",
        "10.1.1.1:443",
    ),
    ("[openapi.\"a b\"]\nfile = \"pets.json\"\nbase_url = \"https://a.com\"", (1, 10), "openapi.a b", "prefix"),
    (
        "[openapi.a]\nfile = \"pets.json\"\nbase_url = \"https://a.com\"\npolicies = { x = 1 }",
        (4, 18),
        "openapi.a.policies.x",
        "wanted string",
    ),
    ("[mcp.a]", (1, 6), "mcp.a", "command"),
    ("[mcp.a]\ncommand = []", (2, 11), "mcp.a.command", "names no program"),
    ("[mcp.a]\ncommand = [\"x\"]\nurl = \"https://a.com\"", (3, 7), "mcp.a.url", "one of the two"),
    ("[mcp.a]\ncommand = [\"x\"]\nheaders = { A = \"x\" }", (3, 11), "mcp.a.headers", "env"),
    ("[mcp.a]\nurl = \"https://a.com\"\nenv = { A = \"x\" }", (3, 7), "mcp.a.env", "headers"),
    ("[mcp.a]\ncommand = [\"x\"]\nenv = { A = \"${ZERO}\" }", (3, 13), "mcp.a.env.A", "zero byte"),
    ("[mcp.a]\ncommand = [\"x\"]\nenv = { \"A=\" = \"x\" }", (3, 16), "mcp.a.env.A=", "not a valid name"),
    ("[mcp.a]\nurl = \"https://a.com/#x\"", (2, 7), "mcp.a.url", "fragment"),
    ("[mcp.a]\ncommand = [\"x\"]\nstart_timeout_ms = 0", (3, 20), "mcp.a.start_timeout_ms", "1 to 600000"),
    ("[network]\nallow_private = [\"localhost\"]", (2, 18), "network.allow_private[0]", "localhost:9000"),
    ("a = ", (1, 5), "", "not TOML"),
    ("[service]\nqueue = 1\nqueue = 2", (3, 1), "", "queue occurs twice"),
];

#[test]
fn each_field_is_wrong_once() {
    let mut missed = Vec::new();
    for (text, at, field, wanted) in WRONG {
        let error = parse(text).expect_err(text);
        let shown = error.to_string();
        let is_right = (error.at, error.field.as_str()) == (Some(*at), *field) && shown.contains(wanted);
        if !is_right || error.next.is_empty() || !shown.starts_with("service.toml:") {
            missed.push(format!("{text}\n=> {shown}\n   wanted {at:?} {field} {wanted}\n"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn values_of_the_environment_are_in_no_error() {
    for text in [
        "[tools.a]\nurl = \"https://a.com/\"\nheaders = { A = \"${CRM_TOKEN}\\n\" }",
        "[mcp.a]\ncommand = [\"x\"]\nenv = { A = \"${CRM_TOKEN}\\u0000\" }",
        "[tools.a]\nurl = \"https://a.com/\"\nheaders = { A = \"${CRM_TOKEN}${NONE}\" }",
    ] {
        let error = parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("value-of"), "{error}");
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = Config::read(Path::new("/nowhere/service.toml")).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/service.toml: the configuration cannot be read: "), "{error}");
    let error = parse("[tools.a]\nurl = \"https://a.com/\"\ninput_file = \"/dev/zero\"").unwrap_err();
    assert!(error.message.contains("16777216 bytes"), "{error}");
}

#[test]
fn a_token_is_one_tenants() {
    let tenant = |name: &str, tokens: &[&str]| {
        let digests: Vec<String> = tokens.iter().map(|token| format!("\"{}\"", hex(token))).collect();
        format!("[[tenants]]\nname = \"{name}\"\ntokens_sha256 = [{}]\n", digests.join(","))
    };
    let config = parse(&(tenant("a", &["one", "two"]) + &tenant("b", &["three"]))).unwrap();
    for (token, name) in [("one", Some("a")), ("two", Some("a")), ("three", Some("b")), ("", None), ("One", None)] {
        assert_eq!(config.tenant_of(token).map(|tenant| tenant.name.as_str()), name, "{token}");
    }
    assert_eq!((config.anonymous(), config.tenant_named("anonymous")), (None, None));
    let upper = parse(
        &tenant("a", &["one"])
            .to_uppercase()
            .replace("[[TENANTS]]\nNAME", "[[tenants]]\nname")
            .replace("TOKENS_SHA", "tokens_sha"),
    );
    assert!(upper.unwrap().tenant_of("one").is_some());

    for (text, field, wanted) in [
        (tenant("a", &["one"]) + &tenant("a", &["two"]), "tenants[1].name", "already"),
        (tenant("a", &["one"]) + &tenant("b", &["one"]), "tenants[1].tokens_sha256", "already"),
        (tenant("a", &["one", "one"]), "tenants[0].tokens_sha256", "already"),
    ] {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.message.contains(wanted), "{error}");
    }
    let tenants: String = (0..10_001).map(|n| tenant(&format!("t{n}"), &[&n.to_string()])).collect();
    assert!(parse(&tenants).unwrap_err().message.contains("10000"));
    let tokens: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    assert!(parse(&tenant("a", &tokens)).unwrap_err().message.contains("100"));
}

#[test]
fn approvers_have_tokens_of_their_own() {
    let tenant = |name: &str, token: &str, approver: &str| {
        let (token, approver) = (hex(token), hex(approver));
        format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{token}\"\napprover_token_sha256 = \"{approver}\"\n")
    };
    let config = parse(&(tenant("a", "1", "2") + &tenant("b", "3", "4"))).unwrap();
    for (token, tenant, approver) in
        [("1", Some("a"), None), ("2", None, Some("a")), ("4", None, Some("b")), ("", None, None)]
    {
        let name = |tenant: Option<&Tenant>| tenant.map(|tenant| tenant.name.clone());
        assert_eq!(name(config.tenant_of(token)).as_deref(), tenant, "{token}");
        assert_eq!(name(config.approver_of(token)).as_deref(), approver, "{token}");
    }
    let alone = parse(&format!("approver_token_sha256 = \"{}\"", hex("x"))).unwrap();
    assert!(alone.anonymous().unwrap().has_approvers() && alone.approver_of("x").is_some());
    for (text, field, wanted) in [
        (tenant("a", "1", "1"), "tenants[0].token_sha256", "already"),
        (tenant("a", "1", "2") + &tenant("b", "2", "3"), "tenants[1].token_sha256", "already"),
        (
            format!("approver_token_sha256 = \"{}\"\n{}", hex("x"), tenant("a", "1", "2")),
            "approver_token_sha256",
            "without tenants",
        ),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.field == field && error.message.contains(wanted), "{error}");
    }
}

fn hex(token: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn without_tenants_only_this_machine_may_come() {
    let open = Config::default();
    assert_eq!(open.anonymous().map(|tenant| tenant.name.as_str()), Some("anonymous"));
    assert_eq!(open.tenant_named("anonymous"), open.anonymous());
    for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        open.check_exposure(&address.parse().unwrap()).unwrap();
    }
    let closed = parse(&format!("[[tenants]]\nname = \"a\"\ntoken_sha256 = \"{}\"", hex("x"))).unwrap();
    for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "203.0.113.9:1"] {
        let error = open.check_exposure(&address.parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("[[tenants]]") && error.contains(address), "{error}");
        closed.check_exposure(&address.parse().unwrap()).unwrap();
    }
}
