//! Query attributes, of clients that send them.

use super::statements::Statement;
use super::{End, cells, malformed};
use sql::Session;
use std::borrow::Cow;
use types::Value;
use wire::attributes::{self, Attribute, Execution};
use wire::constants::capability;

/// Attributes as the session keeps them.
pub(super) type Attributes = Vec<(String, Value)>;

fn has_them(capabilities: u64) -> bool {
    capabilities & capability::QUERY_ATTRIBUTES != 0
}

fn kept(attributes: &[Attribute<'_>], session: &Session) -> Attributes {
    let zone = session.variables().zone();
    let value = |attribute: &Attribute<'_>| cells::parameter(attribute.value, zone).to_value();
    let name = |attribute: &Attribute<'_>| String::from_utf8_lossy(attribute.name).into_owned();
    attributes.iter().map(|found| (name(found), value(found))).collect()
}

/// The attributes and the text of a COM_QUERY.
pub(super) fn of_query<'a>(
    capabilities: u64,
    contents: &'a [u8],
    session: &Session,
) -> Result<(Attributes, &'a [u8]), End> {
    if !has_them(capabilities) {
        return Ok((Attributes::new(), contents));
    }
    let (attributes, text) = attributes::of_query(contents).map_err(malformed)?;
    Ok((kept(&attributes, session), text))
}

/// The attributes of a COM_STMT_EXECUTE, and its parameters as clients without attributes send them.
pub(super) fn of_execution<'a>(
    capabilities: u64,
    encoded: &'a [u8],
    flags: u8,
    statement: &Statement,
    session: &Session,
) -> Result<(Attributes, Cow<'a, [u8]>), End> {
    if !has_them(capabilities) {
        return Ok((Attributes::new(), Cow::Borrowed(encoded)));
    }
    let is_long_data = |at| statement.long_data.get(at).is_some();
    let Execution { params, attributes } =
        attributes::of_execution(encoded, flags, statement.params, is_long_data).map_err(malformed)?;
    Ok((kept(&attributes, session), params))
}
