//! Merchants and third parties at the dashboard: login with an API key, a session cookie, forms with a CSRF token.

use super::*;

const LOGIN: &str = "/dashboard/login";

impl Client<'_> {
    async fn browse(&self, path: &str, cookie: Option<&str>) -> Reply {
        let mut sent = request(self.ip, "GET", path, "", None);
        sent.headers.push(("accept", "text/html".to_owned()));
        sent.headers.extend(cookie.map(|cookie| ("cookie", cookie.to_owned())));
        self.ask(sent).await
    }

    async fn submit(&self, path: &str, fields: &[(&str, &str)], cookie: Option<&str>) -> Reply {
        let mut headers = vec![("sec-fetch-site", "same-origin".to_owned()), ("accept", "text/html".to_owned())];
        headers.extend(cookie.map(|cookie| ("cookie", cookie.to_owned())));
        self.post_form(path, fields, headers).await
    }

    /// Logs in with a key; returns the cookie.
    async fn log_in(&self, known: &Session, key: &str) -> Option<String> {
        let reply = self.submit(LOGIN, &[("key", key)], None).await;
        self.hold_taken(known, "the login", &reply, 303);
        if reply.status != 303 {
            return None;
        }
        Some(reply.header("set-cookie")?.split(';').next()?.to_owned())
    }

    /// Logs in, views a payment, and logs out: the cookie is invalid afterwards.
    pub(super) async fn dashboard(&self, known: &Session, key: &str) {
        let Some(cookie) = self.log_in(known, key).await else { return };
        let page = self.browse(&format!("/dashboard/payments/{}", known.id), Some(&cookie)).await;
        self.hold_taken(known, "its page", &page, 200);
        if page.status != 200 {
            return;
        }
        let text = String::from_utf8_lossy(&page.body).into_owned();
        self.hold("responses-are-durable", known.id, text.contains(&known.id.to_string()), || {
            format!("the dashboard's page of {} is another's", known.id)
        });
        let Some(token) = token_of(&text) else {
            self.violate(
                "forms-need-their-token",
                "a page of the dashboard has no form token".to_owned(),
                Some(known.id),
            );
            return;
        };
        for path in ["/dashboard", "/dashboard/payments", "/dashboard/settings", "/dashboard/webhooks"] {
            let reply = self.browse(path, Some(&cookie)).await;
            self.hold_taken(known, path, &reply, 200);
        }
        let out = self.submit("/dashboard/logout", &[("token", &token)], Some(&cookie)).await;
        self.hold_taken(known, "the logout", &out, 303);
        if out.status == 303 {
            self.hold_shut_out(known, "the cookie of a session that ended", Some(&cookie)).await;
        }
        self.sim.mark("a merchant uses the dashboard");
    }

    /// Checks that a cookie is invalid.
    async fn hold_shut_out(&self, known: &Session, what: &str, cookie: Option<&str>) {
        let reply = self.browse(&format!("/dashboard/payments/{}", known.id), cookie).await;
        let is_shut = reply.status == 303 && reply.header("location") == Some(LOGIN);
        self.hold("forms-need-their-token", known.id, is_shut || reply.status == 503, || {
            format!("{what} gets {} at the dashboard", reply.status)
        });
    }

    /// Sends forms to the dashboard without a session, without a CSRF token, and from another site.
    pub(super) async fn forge_at_the_dashboard(&self, known: &Session, key: &str) {
        let path = format!("/dashboard/payments/{}/cancel", known.id);
        self.hold_shut_out(known, "nobody", None).await;
        let reply = self.submit(&path, &[("token", "00")], None).await;
        self.hold_not_done(known, "a form without a session", &reply);
        let Some(cookie) = self.log_in(known, key).await else { return };
        let Some(other) = self.log_in(known, key).await else { return };
        let others = self.browse("/dashboard", Some(&other)).await;
        let others = token_of(&String::from_utf8_lossy(&others.body));
        for token in [Some(String::new()), Some("0".repeat(32)), others].into_iter().flatten() {
            let reply = self.submit(&path, &[("token", &token)], Some(&cookie)).await;
            self.hold_not_done(known, "a form with another session's token", &reply);
        }
        let own = self.browse("/dashboard", Some(&cookie)).await;
        if let Some(token) = token_of(&String::from_utf8_lossy(&own.body)) {
            let headers = vec![("sec-fetch-site", "cross-site".to_owned()), ("cookie", cookie)];
            let reply = self.post_form(&path, &[("token", &token)], headers).await;
            self.hold_not_done(known, "a form from another site", &reply);
        }
    }

    fn hold_not_done(&self, known: &Session, what: &str, reply: &Reply) {
        let is_login = reply.status == 303 && reply.header("location") == Some(LOGIN);
        self.hold("forms-need-their-token", known.id, is_login || [403, 503].contains(&reply.status), || {
            format!("{what} gets {} {:?}", reply.status, reply.header("location"))
        });
    }
}

/// Reads the CSRF token of a page's forms.
fn token_of(page: &str) -> Option<String> {
    let (_, rest) = page.split_once("name=\"token\" value=\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}
