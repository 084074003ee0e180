//! What Prometheus answers: series with their labels, read without a copy of any text.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// A series of an instant vector: its labels, the time, and its value then.
#[derive(Debug, Deserialize)]
pub struct Sample<L> {
    pub metric: L,
    value: (f64, Number),
}

impl<L> Sample<L> {
    /// The time of the answer, in Unix seconds.
    pub fn time(&self) -> f64 {
        self.value.0
    }

    /// The value, where it is a finite number.
    pub fn number(&self) -> Option<f64> {
        self.value.1.0
    }
}

/// A number that is written as a text. Absent when it is no number or not finite.
#[derive(Debug)]
struct Number(Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        let BorrowedText(text) = BorrowedText::deserialize(deserializer)?;
        Ok(Number(text.parse().ok().filter(|value: &f64| value.is_finite())))
    }
}

/// The labels of a series. One that is not there is empty, as for Prometheus.
///
/// `N` of the other labels are stored in place. Thousands of series have few labels, and need no allocation.
#[derive(Debug)]
pub struct Labels<'a, const N: usize> {
    /// The name of the metric; empty for the result of a function.
    pub name: Cow<'a, str>,
    pub job: Cow<'a, str>,
    pub instance: Cow<'a, str>,
    pub device: Cow<'a, str>,
    others: [Label<'a>; N],
    more: Vec<Label<'a>>,
}

type Label<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The labels of a device's figure, of which there are very many: at most one tells it from others of its name.
pub type FigureLabels<'a> = Labels<'a, 1>;
/// The labels of everything else.
pub type AllLabels<'a> = Labels<'a, 10>;

impl<'a, const N: usize> Labels<'a, N> {
    /// The labels without name, job, instance and device.
    pub fn others(&self) -> impl Iterator<Item = (&str, &str)> {
        let inline = self.others.iter().take_while(|(label, _)| !label.is_empty());
        inline.chain(&self.more).map(|(label, value)| (&**label, &**value))
    }

    /// The value of a label; empty where there is none.
    pub fn get(&self, label: &str) -> &str {
        self.others().find(|(other, _)| *other == label).map_or("", |(_, value)| value)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Labels<'de, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Labels<'de, N>, D::Error> {
        struct Reader<const N: usize>;
        impl<'de, const N: usize> Visitor<'de> for Reader<N> {
            type Value = Labels<'de, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Labels<'de, N>, M::Error> {
                let none = || Cow::Borrowed("");
                let mut labels = Labels {
                    name: none(),
                    job: none(),
                    instance: none(),
                    device: none(),
                    others: std::array::from_fn(|_| (none(), none())),
                    more: Vec::new(),
                };
                let mut used = 0;
                while let Some((BorrowedText(label), BorrowedText(value))) = map.next_entry()? {
                    match &*label {
                        "__name__" => labels.name = value,
                        "job" => labels.job = value,
                        "instance" => labels.instance = value,
                        "device" => labels.device = value,
                        "" => {}
                        _ => match labels.others.get_mut(used) {
                            Some(place) => {
                                *place = (label, value);
                                used += 1;
                            }
                            None => labels.more.push((label, value)),
                        },
                    }
                }
                Ok(labels)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A text that is borrowed from the answer, unless an escape in it forbids that.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// The series of an answer, or in one sentence why there are none.
pub fn samples<'a, L: Deserialize<'a>>(bytes: &'a [u8]) -> Result<Vec<Sample<L>>, String> {
    #[derive(Deserialize)]
    struct QueryReply<L> {
        status: String,
        data: Option<Data<L>>,
        #[serde(default)]
        error: String,
    }
    #[derive(Deserialize)]
    struct Data<L> {
        result: Vec<Sample<L>>,
    }
    let text = std::str::from_utf8(bytes).map_err(|_| NOT_PROMETHEUS.to_owned())?;
    let reply: QueryReply<L> = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => format!("{NOT_PROMETHEUS}: {error}"),
        _ => NOT_PROMETHEUS.into(),
    })?;
    match reply {
        QueryReply { status, data: Some(data), .. } if status == "success" => Ok(data.result),
        QueryReply { error, .. } if !error.is_empty() => Err(format!("Prometheus refused the query: {error}")),
        _ => Err(NOT_PROMETHEUS.into()),
    }
}

const NOT_PROMETHEUS: &str = "not a Prometheus: unexpected response";
