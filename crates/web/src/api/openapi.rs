//! The OpenAPI document: paths from the table of routes, forms of answers from `schema`.

use super::answer::HandlerResult;
use super::json_text;
use super::query::UrlQuery;
use super::routes::{Handler, PROBES, ParamType, Parameter, ROUTES, Route};
use super::schema::schemas;
use crate::published::Published;
use crate::text::SharedText;
use hyper::header::HeaderMap;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<SharedText> = LazyLock::new(|| SharedText::new(document().to_string()));

pub fn answer(_: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    json_text(&DOCUMENT, headers)
}

fn document() -> Value {
    let paths: Map<String, Value> = ROUTES.iter().map(|route| (route.path.to_owned(), described(route))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ttmon",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The state of a machine with Tenstorrent accelerators. Every figure is of the last sample that the service \
                            took; no request makes it take another. A value that was not measured is null.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "Where the service has a token." } },
        },
        "security": [{}, { "token": [] }],
    })
}

fn described(route: &Route) -> Value {
    let schema = match route.schema {
        Some(name) => json!({ "$ref": format!("#/components/schemas/{name}") }),
        None => json!({ "type": "string" }),
    };
    let mut answers = json!({
        "200": { "description": route.summary, "content": { route.content_type: { "schema": schema } } },
        "304": { "description": "It has not changed since (If-None-Match)." },
    });
    let mut refusals = vec![
        ("400", "A parameter that is not understood."),
        ("401", "A token is needed."),
        ("404", "No such device."),
        ("414", "The address is too long."),
        ("421", "The service only answers this machine."),
        ("429", "Too many wrong tokens."),
    ];
    if matches!(route.handler, Handler::Asked(_)) || PROBES.contains(&route.path) {
        refusals.push(("503", "The service does not answer, or takes no samples."));
    }
    let form = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
    for (status, why) in refusals {
        answers[status] = json!({ "description": why, "content": form });
    }
    json!({
        "get": {
            "operationId": route.path.rsplit('/').next().unwrap_or_default().replace('.', "_"),
            "summary": route.summary,
            "parameters": route.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "responses": answers,
        }
    })
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.param_type {
        ParamType::Text => json!({ "type": "string" }),
        ParamType::List => json!({ "type": "array", "items": { "type": "string" } }),
        ParamType::OneOf(values) => json!({ "type": "string", "enum": values }),
        ParamType::Number(least, most) => {
            let mut schema = json!({ "type": "integer", "format": "int64" });
            if least != i64::MIN {
                schema["minimum"] = json!(least);
            }
            if most != i64::MAX {
                schema["maximum"] = json!(most);
            }
            schema
        }
    };
    let mut described =
        json!({ "name": parameter.name, "in": "query", "description": parameter.help, "schema": schema });
    if parameter.param_type == ParamType::List {
        described["explode"] = json!(false);
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_the_document_and_every_form_it_names_is_there() {
        let document = document();
        let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
        let mut routes: Vec<&str> = ROUTES.iter().map(|route| route.path).collect();
        routes.sort();
        assert_eq!(paths, routes);
        let forms = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        let mut named: Vec<&str> =
            text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        named.sort();
        named.dedup();
        let mut there: Vec<&String> = forms.keys().collect();
        there.sort();
        assert_eq!(named, there);
    }
}
