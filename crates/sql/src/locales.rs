//! How people write numbers, and the names of months and days, in places: MariaDB's locales.

use std::sync::LazyLock;

/// The names of all locales. `lc_time_names` takes a number too, the position here.
pub(crate) static NAMES: [&str; 112] = [
    "en_US", "en_GB", "ja_JP", "sv_SE", "de_DE", "fr_FR", "ar_AE", "ar_BH", "ar_JO", "ar_SA", "ar_SY",
    "be_BY", "bg_BG", "ca_ES", "cs_CZ", "da_DK", "de_AT", "es_ES", "et_EE", "eu_ES", "fi_FI", "fo_FO",
    "gl_ES", "gu_IN", "he_IL", "hi_IN", "hr_HR", "hu_HU", "id_ID", "is_IS", "it_CH", "ko_KR", "lt_LT",
    "lv_LV", "mk_MK", "mn_MN", "ms_MY", "nb_NO", "nl_NL", "pl_PL", "pt_BR", "pt_PT", "ro_RO", "ru_RU",
    "ru_UA", "sk_SK", "sl_SI", "sq_AL", "sr_RS", "ta_IN", "te_IN", "th_TH", "tr_TR", "uk_UA", "ur_PK",
    "vi_VN", "zh_CN", "zh_TW", "ar_DZ", "ar_EG", "ar_IN", "ar_IQ", "ar_KW", "ar_LB", "ar_LY", "ar_MA",
    "ar_OM", "ar_QA", "ar_SD", "ar_TN", "ar_YE", "de_BE", "de_CH", "de_LU", "en_AU", "en_CA", "en_IN",
    "en_NZ", "en_PH", "en_ZA", "en_ZW", "es_AR", "es_BO", "es_CL", "es_CO", "es_CR", "es_DO", "es_EC",
    "es_GT", "es_HN", "es_MX", "es_NI", "es_PA", "es_PE", "es_PR", "es_PY", "es_SV", "es_US", "es_UY",
    "es_VE", "fr_BE", "fr_CA", "fr_CH", "fr_LU", "it_IT", "nl_BE", "no_NO", "sv_FI", "zh_HK", "el_GR",
    "rm_CH", "ka_GE",
];

/// A locale.
#[derive(Debug)]
pub(crate) struct Locale {
    pub(crate) point: char,
    /// What stands between groups of digits; `None` if digits have no groups.
    pub(crate) separator: Option<char>,
    /// The digits of all groups but the last, which has three.
    pub(crate) group: usize,
    pub(crate) months: Vec<&'static str>,
    pub(crate) short_months: Vec<&'static str>,
    /// Monday first.
    pub(crate) days: Vec<&'static str>,
    pub(crate) short_days: Vec<&'static str>,
}

impl Locale {
    /// The locale at a position of [`NAMES`]; the first one, that of American English, if there is none.
    pub(crate) fn at(position: usize) -> &'static Locale {
        LOCALES.get(position).unwrap_or(&LOCALES[0])
    }

    /// The locale of a name, in any case.
    pub(crate) fn of_name(name: &[u8]) -> Option<&'static Locale> {
        let position = NAMES.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name))?;
        LOCALES.get(position)
    }
}

/// Made when a session first asks for a name. A row of the file is name, point, separator, group and the
/// number of the row of names; after an empty row come the rows of names: 12 months, 12 short ones, 7 days
/// and 7 short ones.
static LOCALES: LazyLock<Vec<Locale>> = LazyLock::new(|| {
    let (formats, names) = include_str!("locales.txt").split_once("\n\n").unwrap_or_default();
    let names: Vec<Vec<&'static str>> = names.lines().map(|row| row.split('|').collect()).collect();
    let part = |row: &Vec<&'static str>, from: usize, to: usize| {
        row.get(from..to).map(<[&str]>::to_vec).unwrap_or_default()
    };
    let locale = |row: &'static str| {
        let mut fields = row.split('|').skip(1);
        let mut field = || fields.next().unwrap_or_default();
        let (point, separator, group) = (field(), field(), field());
        let names = names.get(field().parse::<usize>().unwrap_or(0))?;
        Some(Locale {
            point: point.chars().next()?,
            separator: if separator == "\\0" { Some('\0') } else { separator.chars().next() },
            group: group.parse().ok()?,
            months: part(names, 0, 12),
            short_months: part(names, 12, 24),
            days: part(names, 24, 31),
            short_days: part(names, 31, 38),
        })
    };
    formats.lines().filter_map(locale).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locale_has_its_row() {
        let rows: Vec<&str> = include_str!("locales.txt").lines().collect();
        for (position, name) in NAMES.iter().enumerate() {
            assert!(rows[position].starts_with(&format!("{name}|")), "{name}");
            let locale = Locale::at(position);
            assert_eq!((locale.months.len(), locale.short_months.len()), (12, 12), "{name}");
            assert_eq!((locale.days.len(), locale.short_days.len()), (7, 7), "{name}");
        }
        assert_eq!(LOCALES.len(), NAMES.len());
        assert_eq!(Locale::of_name(b"DE_de").expect("a locale").months[2], "März");
    }
}
