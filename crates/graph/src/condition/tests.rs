//! Conditions beside gjson's answers.

use super::Condition;

const PEOPLE: &str = r#"{"name": {"first": "Tom", "last": "Anderson"}, "age": 37, "none": null, "a.b": 1,
    "children": ["Sara", "Alex", "Jack"], "yes": true, "no": false, "empty": [], "text": "{\"in\": 1}",
    "friends": [{"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
                {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
                {"first": "Jane", "age": 47, "nets": ["ig", "tw"]}]}"#;

fn check(body: &str, there: &[&str], absent: &[&str]) {
    for path in there {
        assert!(Condition::of(path).holds(body.as_bytes()), "{path} is there");
    }
    for path in absent {
        assert!(!Condition::of(path).holds(body.as_bytes()), "{path} is not there");
    }
}

/// Recorded from gjson v1.18.0, as are all of these.
#[test]
fn members_and_elements_are_found_by_their_path() {
    check(
        PEOPLE,
        &[
            "name",
            "name.last",
            "age",
            "none",
            "children",
            "children.#",
            "children.1",
            "child*.2",
            "c?ildren.0",
            "a\\.b",
            "friends.#.first",
            "friends.1.nets.0",
            "empty",
            "empty.#",
            "friends.#.nothing",
            "*",
            "name.*st",
            "friends.#",
        ],
        &[
            "",
            "Name",
            "name.middle",
            "age.x",
            "children.3",
            "children.-1",
            "children.x",
            "a.b",
            "empty.0",
            "n?me.x",
            "x|y",
        ],
    );
}

#[test]
fn queries_choose_elements() {
    check(
        PEOPLE,
        &[
            "friends.#(last==\"Murphy\")",
            "friends.#(last==\"Murphy\").first",
            "friends.#(age>45)#.last",
            "friends.#(first%\"D*\")",
            "friends.#(first!%\"D*\").last",
            "friends.#(nets.#(==\"fb\"))#.first",
            "friends.#(age>=68)",
            "friends.#(age==99)#",
            "children.#(==\"Alex\")",
            "children.#(!=\"Alex\")",
            "friends.#(last)",
            "friends.#[first=\"Jane\"]",
            "friends.#(last==~null)",
            "friends.#(age > 50 )",
            "friends.#(last==~*)#|#",
            "children.#(>\"Jac\")",
            "friends.#(first == \"Jane\").last|@keys",
        ],
        &[
            "friends.#(last==\"Nobody\")",
            "friends.#(age>100)",
            "friends.#(first==\"Jane\").last",
            "children.#(==\"x\")",
            "friends.#(last==\"Murphy\"",
            "age.#(>1)",
            "friends.#(age<~true)",
            "friends.#(nets.#(==\"xx\"))",
        ],
    );
}

#[test]
fn modifiers_lists_and_constants_make_values() {
    check(
        PEOPLE,
        &[
            "@this",
            "@this.name",
            "children|@reverse|0",
            "children.@reverse.0",
            "name.@keys.1",
            "name.@values",
            "@valid.age",
            "[@this].#(age==37)",
            "[name.first,age].1",
            "{name.first,\"n\":age}.n",
            "{name.first}.first",
            "[nothing]",
            "{ .input.userId == 1 }",
            "!true",
            "!\"x\"",
            "nothing|!true",
            "nothing|[x]",
            "friends.@join.last",
            "text.@fromstr.in",
            "@dig:first.#",
            "@dig:nets.0.1",
            "friends|@flatten",
            "@pretty:{\"sortKeys\":true}.age",
            "name.@tostr",
            "{first:name.first}.first",
        ],
        &[
            "@nothing",
            "children.@reverse.3",
            "[@this].#(age==38)",
            "[nothing].0",
            "{name.first}.last",
            "nothing|@this",
            "name.nothing|@keys|@this.0",
            "!maybe",
            "a.nothing|!true",
            "@dig:nothing|0",
        ],
    );
}

#[test]
fn conditions_of_the_documentation_hold() {
    let animals = r#"{"predictions": [{"label": "cat", "score": [0.1, 0.9]}], "instances": [{"modelId": "2"}]}"#;
    check(
        animals,
        &[
            "predictions.#(label==\"cat\")",
            "instances.#(modelId==\"2\")",
            "[@this].#(predictions.0.label==\"cat\")",
            "instances.#(modelId==2)",
        ],
        &["predictions.#(label==\"dog\")", "instances.#(modelId==\"1\")"],
    );
}

#[test]
fn a_body_that_is_no_json_has_nothing() {
    for body in ["", "{", "{\"a\": 1} x", "\u{1}"] {
        assert!(!Condition::of("@this").holds(body.as_bytes()), "{body}");
    }
    check("[1, 2]", &["0", "#", "#(>1)", "@this"], &["2", "a", "#(>2)"]);
    check("7", &["@this", "!1", "[@this].0"], &["0", "#", "a"]);
    check(r#"{"a": {"b": 1}, "a": {"c": 2}, "": 3}"#, &["a.b", "a.c", "*.c", "@this|a|b"], &["a|c"]);
}

#[test]
fn hostile_paths_and_bodies_end() {
    let body = format!("{{\"a\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
    for path in ["@dig:b", "@flatten:{\"deep\":true}", "a.@flatten:{\"deep\":true}", "a.0.0.0", "*.*.*", "a.#.#.#.#"] {
        Condition::of(path).holds(body.as_bytes());
    }
    let nested = format!("{}a{}", "[".repeat(500), "]".repeat(500));
    Condition::of(&format!("{nested}.0.0")).holds(b"{}");
    for path in [
        "#(",
        "#(\"",
        "#(a==\"\\",
        "@",
        "@:",
        "@this:",
        "@this:{",
        "!",
        "!\"",
        "[",
        "{",
        "[,]",
        "a|",
        "a.",
        "|",
        "..",
        "#.",
        "#()#",
    ] {
        Condition::of(path).holds(br#"{"a": [1, {"b": 2}]}"#);
        Condition::of(path).holds(br#"[1, {"b": 2}]"#);
    }
    let stars = "*a".repeat(200);
    assert!(!Condition::of(&stars).holds(format!("{{\"{}\": 1}}", "a".repeat(5000) + "b").as_bytes()));
}
