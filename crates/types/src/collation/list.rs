//! The list of collations and character sets.

use super::Collation;
use super::bytes::ByteWeights;
use super::uca::{Levels, Uca};
use base::sync::OnceLock;

/// A collation, as SHOW COLLATION describes it.
pub struct Definition {
    pub name: &'static str,
    /// The name of its character set.
    pub charset: &'static str,
    /// The protocol's number.
    pub id: u16,
    /// What SHOW COLLATION calls SORTLEN.
    pub sort_length: u8,
    /// The most bytes that a character takes in the character set.
    pub(super) bytes_max: u8,
    pub(super) order: Order,
}

/// How a collation of the list compares.
pub(super) enum Order {
    /// No column can have the collation.
    None,
    /// It is one of the program's own.
    Own(Collation),
    /// It has the weights of one of the program's own; the flag is true for PAD SPACE.
    Same(Collation, bool),
    /// It gives each byte a weight; the flag is true for PAD SPACE.
    Bytes(ByteWeights, bool),
    Uca(Uca),
}

/// The place of a collation in [`definitions`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listed(u16);

/// A character set, as SHOW CHARACTER SET describes it.
#[derive(Debug)]
pub struct Charset {
    pub name: &'static str,
    pub description: &'static str,
    pub collation_default: &'static str,
    /// The most bytes that a character takes.
    pub bytes_max: u8,
}

const fn charset(
    name: &'static str,
    collation_default: &'static str,
    description: &'static str,
    bytes_max: u8,
) -> Charset {
    Charset { name, description, collation_default, bytes_max }
}

/// The character sets that MariaDB has.
pub static CHARSETS: &[Charset] = &[
    charset("big5", "big5_chinese_ci", "Big5 Traditional Chinese", 2),
    charset("dec8", "dec8_swedish_ci", "DEC West European", 1),
    charset("cp850", "cp850_general_ci", "DOS West European", 1),
    charset("hp8", "hp8_english_ci", "HP West European", 1),
    charset("koi8r", "koi8r_general_ci", "KOI8-R Relcom Russian", 1),
    charset("latin1", "latin1_swedish_ci", "cp1252 West European", 1),
    charset("latin2", "latin2_general_ci", "ISO 8859-2 Central European", 1),
    charset("swe7", "swe7_swedish_ci", "7bit Swedish", 1),
    charset("ascii", "ascii_general_ci", "US ASCII", 1),
    charset("ujis", "ujis_japanese_ci", "EUC-JP Japanese", 3),
    charset("sjis", "sjis_japanese_ci", "Shift-JIS Japanese", 2),
    charset("hebrew", "hebrew_general_ci", "ISO 8859-8 Hebrew", 1),
    charset("tis620", "tis620_thai_ci", "TIS620 Thai", 1),
    charset("euckr", "euckr_korean_ci", "EUC-KR Korean", 2),
    charset("koi8u", "koi8u_general_ci", "KOI8-U Ukrainian", 1),
    charset("gb2312", "gb2312_chinese_ci", "GB2312 Simplified Chinese", 2),
    charset("greek", "greek_general_ci", "ISO 8859-7 Greek", 1),
    charset("cp1250", "cp1250_general_ci", "Windows Central European", 1),
    charset("gbk", "gbk_chinese_ci", "GBK Simplified Chinese", 2),
    charset("latin5", "latin5_turkish_ci", "ISO 8859-9 Turkish", 1),
    charset("armscii8", "armscii8_general_ci", "ARMSCII-8 Armenian", 1),
    charset("utf8mb3", "utf8mb3_general_ci", "UTF-8 Unicode", 3),
    charset("ucs2", "ucs2_general_ci", "UCS-2 Unicode", 2),
    charset("cp866", "cp866_general_ci", "DOS Russian", 1),
    charset("keybcs2", "keybcs2_general_ci", "DOS Kamenicky Czech-Slovak", 1),
    charset("macce", "macce_general_ci", "Mac Central European", 1),
    charset("macroman", "macroman_general_ci", "Mac West European", 1),
    charset("cp852", "cp852_general_ci", "DOS Central European", 1),
    charset("latin7", "latin7_general_ci", "ISO 8859-13 Baltic", 1),
    charset("utf8mb4", "utf8mb4_general_ci", "UTF-8 Unicode", 4),
    charset("cp1251", "cp1251_general_ci", "Windows Cyrillic", 1),
    charset("utf16", "utf16_general_ci", "UTF-16 Unicode", 4),
    charset("utf16le", "utf16le_general_ci", "UTF-16LE Unicode", 4),
    charset("cp1256", "cp1256_general_ci", "Windows Arabic", 1),
    charset("cp1257", "cp1257_general_ci", "Windows Baltic", 1),
    charset("utf32", "utf32_general_ci", "UTF-32 Unicode", 4),
    charset("binary", "binary", "Binary pseudo charset", 1),
    charset("geostd8", "geostd8_general_ci", "GEOSTD8 Georgian", 1),
    charset("cp932", "cp932_japanese_ci", "SJIS for Windows Japanese", 2),
    charset("eucjpms", "eucjpms_japanese_ci", "UJIS for Windows Japanese", 3),
];

/// The languages of UCA 14.0.0; the empty one is the root. A number is the place of the language's collations
/// among those of a character set, 8 for each.
static LANGUAGES: [(u16, &str); 23] = [
    (0, ""),
    (1, "icelandic"),
    (2, "latvian"),
    (3, "romanian"),
    (4, "slovenian"),
    (5, "polish"),
    (6, "estonian"),
    (7, "spanish"),
    (8, "swedish"),
    (9, "turkish"),
    (10, "czech"),
    (11, "danish"),
    (12, "lithuanian"),
    (13, "slovak"),
    (14, "spanish2"),
    (15, "roman"),
    (16, "persian"),
    (17, "esperanto"),
    (18, "hungarian"),
    (19, "sinhala"),
    (20, "german2"),
    (23, "vietnamese"),
    (24, "croatian"),
];

/// The numbers of the first collation of UCA 14.0.0 of each character set.
static FIRST_UCA_1400: [(u16, &str); 5] =
    [(2048, "utf8mb3"), (2304, "utf8mb4"), (2560, "ucs2"), (2816, "utf16"), (3072, "utf32")];

static LIST: OnceLock<Box<[Definition]>> = OnceLock::new();

/// All collations, those of a character set together.
pub fn definitions() -> &'static [Definition] {
    LIST.get_or_init(|| {
        let lines = include_str!("collations.txt").lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(listed).chain(uca_1400()).collect()
    })
}

fn listed(line: &'static str) -> Option<Definition> {
    let mut fields = line.split(' ');
    let (id, name, length) = (fields.next()?, fields.next()?, fields.next()?);
    let own = |name: &str| Collation::OWN.into_iter().find(|own| own.name() == name);
    let pads = !name.contains("nopad") && !name.contains("_0900_");
    let levels = Levels { second: name.contains("_as_"), third: name.ends_with("_cs") };
    let order = match fields.next()? {
        "-" => Order::None,
        "=" => Order::Own(own(name)?),
        "bytes" => Order::Bytes(ByteWeights::of(name.split('_').next()?, id.parse().ok()?)?, pads),
        order => match order.strip_prefix('=') {
            Some(same) => Order::Same(own(same)?, pads),
            None => Order::Uca(Uca { name: order, levels, pads, table: OnceLock::new() }),
        },
    };
    let charset = name.split('_').next()?;
    Some(Definition {
        name,
        charset,
        bytes_max: CHARSETS.iter().find(|one| one.name == charset)?.bytes_max,
        id: id.parse().ok()?,
        sort_length: length.parse().ok()?,
        order,
    })
}

fn uca_1400() -> impl Iterator<Item = Definition> {
    FIRST_UCA_1400.iter().flat_map(|(first, charset)| {
        LANGUAGES.iter().flat_map(move |(place, language)| {
            (0..8).map(move |form| {
                let (pads, second, third) = (form & 4 == 0, form & 2 != 0, form & 1 != 0);
                let underscore = if language.is_empty() { "" } else { "_" };
                let plus = if language.is_empty() { "" } else { "+" };
                let name = format!(
                    "{charset}_uca1400_{language}{underscore}{}{}_{}",
                    if pads { "" } else { "nopad_" },
                    if second { "as" } else { "ai" },
                    if third { "cs" } else { "ci" },
                );
                let order = if charset.starts_with("utf8") {
                    let levels = Levels { second, third };
                    let name = format!("1400{plus}{language}").leak();
                    Order::Uca(Uca { name, levels, pads, table: OnceLock::new() })
                } else {
                    Order::None
                };
                Definition {
                    name: name.leak(),
                    charset,
                    id: first + 8 * place + form,
                    sort_length: 8,
                    bytes_max: if *charset == "utf8mb3" { 3 } else { 4 },
                    order,
                }
            })
        })
    })
}

impl Definition {
    /// The form in which a column has the collation. None if no column can have it.
    pub fn column(&self) -> Option<Collation> {
        match self.order {
            Order::None => None,
            Order::Own(own) => Some(own),
            Order::Same(..) | Order::Bytes(..) | Order::Uca(_) => {
                let place = definitions().iter().position(|one| one.id == self.id)?;
                Some(Collation::Listed(Listed(place as u16)))
            }
        }
    }

    /// True if it is the default of its character set.
    pub fn is_default(&self) -> bool {
        CHARSETS.iter().any(|charset| charset.collation_default == self.name)
    }

    /// True if the shorter of two texts does not go on with spaces when they are compared.
    pub fn is_nopad(&self) -> bool {
        match &self.order {
            Order::None | Order::Own(_) => self.name.contains("nopad") || self.charset == "binary",
            Order::Same(_, pads) | Order::Bytes(_, pads) => !pads,
            Order::Uca(uca) => !uca.pads,
        }
    }
}

impl Listed {
    #[inline]
    pub(super) fn definition(self) -> &'static Definition {
        &definitions()[usize::from(self.0)]
    }
}
