//! The OpenAPI description: complete, consistent with responses, and readable without a script.

use crate::harness::shared;

crate::tests!(
    the_description_is_served_and_names_this_gateway,
    the_api_page_needs_no_script_and_no_external_resource,
    llms_txt_explains_the_first_steps,
);

fn the_description_is_served_and_names_this_gateway() {
    let api = &shared().api;
    let document = api.get("/openapi.json").send().ok(200);
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], api.base.as_str());
    let create = &document["paths"]["/api/public/payments"]["post"];
    assert_eq!(
        create["requestBody"]["content"]["application/json"]["schema"]["$ref"],
        "#/components/schemas/CreatePayment"
    );
    for status in ["201", "400", "401", "403", "422", "429"] {
        assert!(create["responses"][status].is_object(), "{status}: {create}");
    }
}

fn the_api_page_needs_no_script_and_no_external_resource() {
    let api = &shared().api;
    let page = api.get("/docs").send();
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("script-src"), "{policy}");
    let html = page.text();
    assert!(!html.contains("<script") && !html.contains("style="), "{html}");
    assert!(html.contains("/api/public/payments/{id}/cancel"));
    for place in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        if place.starts_with('/') {
            assert_eq!(api.get(place).send().status, 200, "{place}");
        } else {
            let name = place.strip_prefix('#').unwrap_or_else(|| panic!("{place} is elsewhere"));
            assert!(html.contains(&format!("id=\"{name}\"")), "{place} leads nowhere");
        }
    }
    for part in
        ["<td><code>expiresInSeconds</code> (optional)</td>", "id=\"CreatePayment\"", "The currency of the ledger."]
    {
        assert!(html.contains(part), "{part} is not on the page");
    }
}

fn llms_txt_explains_the_first_steps() {
    let text = shared().api.get("/llms.txt").send();
    assert!(text.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
    assert!(text.text().contains("/openapi.json"));
}
