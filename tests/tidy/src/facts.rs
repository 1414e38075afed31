//! The facts about one Rust source that the rules need. They are read once from its syntax tree.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// Everything below has this place: the inline modules around it, outermost first, and its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    pub modules: Vec<String>,
    pub line: usize,
    /// Only compiled into tests.
    pub test: bool,
}

#[derive(Debug)]
pub struct Function {
    pub place: Place,
    /// `Type::name` for a method.
    pub name: String,
    /// From `fn` to the closing brace.
    pub lines: usize,
    /// `self` counts, as it does for clippy.
    pub parameters: usize,
}

/// A path of at least two parts that begins with `crate`, `self`, `super` or the name of a module or crate.
#[derive(Debug)]
pub struct Reference {
    pub place: Place,
    pub path: Vec<String>,
}

#[derive(Debug)]
pub struct Module {
    pub place: Place,
    pub name: String,
    pub public: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    Enumeration,
    Macro,
    Other,
}

/// A type, trait, function, constant, static or macro of a module.
#[derive(Debug)]
pub struct Item {
    pub place: Place,
    pub name: String,
    pub public: bool,
    /// The identifiers in its interface: a signature, public fields, variants.
    pub interface: BTreeSet<String>,
    pub kind: ItemKind,
}

#[derive(Debug)]
pub struct Use {
    pub place: Place,
    pub public: bool,
    /// The path as written, without the name that it is given here; `*` at the end for all names.
    pub path: Vec<String>,
    /// The name that it has here.
    pub name: String,
}

#[derive(Debug)]
pub struct Implementation {
    pub place: Place,
    pub self_type: String,
    /// Public functions and constants of the type itself; none for an implementation of a trait.
    pub members: Vec<Item>,
    /// The identifiers of the trait and its associated types.
    pub interface: BTreeSet<String>,
}

/// A `match` whose arms name cases of enumerations.
#[derive(Debug)]
pub struct Match {
    /// The line of the arm that takes whatever is left, or else of the match.
    pub place: Place,
    pub function: String,
    pub enumerations: BTreeSet<String>,
    pub catches_all: bool,
}

#[derive(Debug)]
pub struct Constant {
    pub place: Place,
    pub name: String,
    /// `u8`, or `[u8]` for bytes of any length; without references.
    pub type_name: String,
}

#[derive(Debug, Default)]
pub struct Facts {
    pub identifiers: HashSet<String>,
    pub functions: Vec<Function>,
    pub references: Vec<Reference>,
    pub modules: Vec<Module>,
    pub items: Vec<Item>,
    pub uses: Vec<Use>,
    pub implementations: Vec<Implementation>,
    pub matches: Vec<Match>,
    pub constants: Vec<Constant>,
    /// There is a `const _: () = ...`, which the compiler evaluates.
    pub asserts: bool,
    /// The large integers in the code, also in macros.
    pub numbers: Vec<Number>,
    /// The lines of `a ^= a << n`: a step of a generator of random numbers.
    pub xorshifts: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    pub line: usize,
    pub value: u128,
}

/// Smaller integers are not noted.
const NUMBER_MIN: u128 = 1 << 20;

impl Facts {
    /// An error has the line.
    pub fn read(source: &str) -> Result<Facts, String> {
        let tokens: TokenStream = source.parse().map_err(|error| format!("{error}"))?;
        let mut facts = Facts::default();
        collect_identifiers(&tokens, &mut facts.identifiers);
        facts.collect_numbers(&tokens);
        let file: syn::File =
            syn::parse2(tokens).map_err(|error| format!("line {}: {error}", error.span().start().line))?;
        let mut reader = Reader {
            facts,
            place: Place { test: file.attrs.iter().any(is_test), ..Place::default() },
            owner: None,
            function: String::new(),
        };
        reader.visit_file(&file);
        Ok(reader.facts)
    }

    fn collect_numbers(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let line = token.span().start().line;
            match token {
                TokenTree::Group(group) => self.collect_numbers(&group.stream()),
                TokenTree::Literal(literal) => {
                    let value = integer(&literal.to_string()).filter(|value| *value >= NUMBER_MIN);
                    self.numbers.extend(value.map(|value| Number { line, value }));
                }
                TokenTree::Punct(_) if is_xorshift(&tokens, at) => self.xorshifts.push(line),
                TokenTree::Punct(_) | TokenTree::Ident(_) => {}
            }
        }
    }
}

/// The value of an integer as it is written in code: with underscores and a suffix, or in hexadecimal.
fn integer(literal: &str) -> Option<u128> {
    let (radix, digits) = match literal.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, literal),
    };
    let digits: String =
        digits.chars().filter(|digit| *digit != '_').take_while(|digit| digit.is_digit(radix)).collect();
    u128::from_str_radix(&digits, radix).ok()
}

/// `a ^= a << n`, where `at` is the place of `^` and `a` is any path.
fn is_xorshift(tokens: &[TokenTree], at: usize) -> bool {
    let is = |at: usize, expected: char| matches!(tokens.get(at), Some(TokenTree::Punct(mark)) if mark.as_char() == expected);
    is(at, '^')
        && is(at + 1, '=')
        && (1..=at).any(|length| {
            let (from, shift) = (at + 2, at + 2 + length);
            is(shift, '<')
                && is(shift + 1, '<')
                && (0..length)
                    .all(|part| tokens[at - length + part].to_string() == tokens[from + part].to_string())
        })
}

fn collect_identifiers(tokens: &TokenStream, found: &mut HashSet<String>) {
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(identifier) => {
                let name = identifier.to_string();
                if !found.contains(&name) {
                    found.insert(name);
                }
            }
            TokenTree::Group(group) => collect_identifiers(&group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// `#[test]`, or a `#[cfg]` that only holds in tests.
fn is_test(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("cfg") && requires_test(&list.tokens)
}

/// `test`, or `all(...)` with `test` in it.
fn requires_test(tokens: &TokenStream) -> bool {
    let mut all = false;
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(name) if name == "test" => return true,
            TokenTree::Ident(name) => all = name == "all",
            TokenTree::Group(group) if all && requires_test(&group.stream()) => return true,
            _ => {}
        }
    }
    false
}

struct Reader {
    facts: Facts,
    place: Place,
    /// The type of the `impl` or the trait around.
    owner: Option<String>,
    function: String,
}

impl Reader {
    fn at(&self, span: Span) -> Place {
        Place { line: span.start().line, ..self.place.clone() }
    }

    fn push_item(&mut self, name: &syn::Ident, visibility: &syn::Visibility, interface: BTreeSet<String>) {
        let (place, public) = (self.at(name.span()), is_public(visibility));
        let item = Item { place, name: name.to_string(), public, interface, kind: ItemKind::Other };
        self.facts.items.push(item);
    }

    fn push_function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let begin = signature.fn_token.span.start().line;
        let end = block.brace_token.span.close().end().line;
        let name = match &self.owner {
            Some(owner) => format!("{owner}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        self.facts.functions.push(Function {
            place: Place { line: begin, ..self.place.clone() },
            name: name.clone(),
            lines: end - begin + 1,
            parameters: signature.inputs.len(),
        });
        self.function = name;
    }

    fn push_reference(&mut self, path: Vec<String>, line: usize) {
        // A path that begins with a type or a trait leads to no module.
        let is_path = path.len() > 1 && path[0].starts_with(|first: char| !first.is_uppercase());
        if is_path {
            self.facts.references.push(Reference { place: Place { line, ..self.place.clone() }, path });
        }
    }

    /// The paths in the tokens of a macro, which no syntax tree shows.
    fn read_tokens(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.read_tokens(&group.stream()),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while let [TokenTree::Punct(one), TokenTree::Punct(two), TokenTree::Ident(next)] =
                        tokens.get(at + 1..at + 4).unwrap_or_default()
                        && one.as_char() == ':'
                        && two.as_char() == ':'
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    self.push_reference(path, first.span().start().line);
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn read_use(&mut self, tree: &syn::UseTree, path: &mut Vec<String>, public: bool) {
        let (last, name, span) = match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.read_use(&part.tree, path, public);
                path.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(tree, path, public);
                }
                return;
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string(), name.ident.span()),
            syn::UseTree::Rename(name) => {
                (name.ident.to_string(), name.rename.to_string(), name.ident.span())
            }
            syn::UseTree::Glob(glob) => ("*".to_owned(), "*".to_owned(), glob.star_token.spans[0]),
        };
        let mut whole = path.clone();
        if last != "self" || whole.is_empty() {
            whole.push(last.clone());
        }
        let name = if name == "self" { path.last().cloned().unwrap_or(name) } else { name };
        let place = self.at(span);
        self.push_reference(whole.clone(), place.line);
        self.facts.uses.push(Use { place, public, path: whole, name });
    }

    fn within<T>(&mut self, attributes: &[syn::Attribute], read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.place.test;
        self.place.test |= attributes.iter().any(is_test);
        let result = read(self);
        self.place.test = before;
        result
    }

    fn read_match(&mut self, expression: &syn::ExprMatch) {
        let mut enumerations = BTreeSet::new();
        let mut rest = None;
        for arm in &expression.arms {
            let mut cases = Cases::default();
            cases.visit_pat(&arm.pat);
            enumerations.append(&mut cases.enumerations);
            if catches_all(&arm.pat) {
                rest = Some(self.at(arm.fat_arrow_token.spans[0]));
            }
        }
        if let Some(owner) = &self.owner
            && enumerations.remove("Self")
        {
            enumerations.insert(owner.clone());
        }
        let catches_all = rest.is_some();
        let place = rest.unwrap_or_else(|| self.at(expression.match_token.span));
        let function = self.function.clone();
        self.facts.matches.push(Match { place, function, enumerations, catches_all });
    }
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// A pattern that matches everything: `_`, a plain name, or a tuple of such. One with a guard does not.
fn catches_all(pattern: &syn::Pat) -> bool {
    match pattern {
        syn::Pat::Wild(_) => true,
        syn::Pat::Ident(name) => {
            name.subpat.is_none() && name.ident.to_string().starts_with(|first: char| !first.is_uppercase())
        }
        syn::Pat::Tuple(tuple) => tuple.elems.iter().all(catches_all),
        syn::Pat::Reference(inner) => catches_all(&inner.pat),
        syn::Pat::Paren(inner) => catches_all(&inner.pat),
        syn::Pat::Or(cases) => cases.cases.iter().any(catches_all),
        _ => false,
    }
}

/// The enumerations whose cases a pattern names: the last but one part of each path.
#[derive(Default)]
struct Cases {
    enumerations: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Cases {
    fn visit_pat_guard(&mut self, pattern: &'ast syn::PatGuard) {
        self.visit_pat(&pattern.pat);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() >= 2 {
            let owner = &path.segments[path.segments.len() - 2];
            self.enumerations.insert(owner.ident.to_string());
        }
    }
}

/// The identifiers in a part of the tree.
#[derive(Default)]
struct Names {
    found: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_ident(&mut self, identifier: &'ast syn::Ident) {
        self.found.insert(identifier.to_string());
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.visit_type(&field.ty);
    }
}

fn signature_names(signature: &syn::Signature) -> BTreeSet<String> {
    let mut names = Names::default();
    names.visit_generics(&signature.generics);
    for input in &signature.inputs {
        names.visit_fn_arg(input);
    }
    names.visit_return_type(&signature.output);
    names.found
}

fn field_names<'a>(fields: impl Iterator<Item = &'a syn::Field>, all: bool) -> BTreeSet<String> {
    let mut names = Names::default();
    for field in fields.filter(|field| all || is_public(&field.vis)) {
        names.visit_field(field);
    }
    names.found
}

fn constant_type(of: &syn::Type) -> String {
    match of {
        syn::Type::Reference(inner) => constant_type(&inner.elem),
        syn::Type::Array(array) => format!("[{}]", constant_type(&array.elem)),
        syn::Type::Slice(slice) => format!("[{}]", constant_type(&slice.elem)),
        of => type_name(of).unwrap_or_default(),
    }
}

fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        syn::Type::Reference(inner) => type_name(&inner.elem),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = attributes_of(item);
        self.within(attributes, |reader| visit::visit_item(reader, item));
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let place = self.at(module.ident.span());
        let (name, public) = (module.ident.to_string(), is_public(&module.vis));
        self.facts.modules.push(Module { place, name: name.clone(), public });
        self.place.modules.push(name);
        visit::visit_item_mod(self, module);
        self.place.modules.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.read_use(&item.tree, &mut Vec::new(), is_public(&item.vis));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        // A function inside of a function is no item of the module.
        let (owner, outer) = (self.owner.take(), std::mem::take(&mut self.function));
        if outer.is_empty() {
            self.push_item(&item.sig.ident, &item.vis, signature_names(&item.sig));
        }
        self.push_function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
        (self.owner, self.function) = (owner, outer);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.push_item(&item.ident, &item.vis, field_names(item.fields.iter(), false));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let fields = item.variants.iter().flat_map(|variant| variant.fields.iter());
        self.push_item(&item.ident, &item.vis, field_names(fields, true));
        if let Some(item) = self.facts.items.last_mut() {
            item.kind = ItemKind::Enumeration;
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        let mut names = Names::default();
        names.visit_type(&item.ty);
        self.push_item(&item.ident, &item.vis, names.found);
        visit::visit_item_type(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let mut names = Names::default();
        for part in &item.items {
            match part {
                syn::TraitItem::Fn(function) => names.found.extend(signature_names(&function.sig)),
                part => names.visit_trait_item(part),
            }
        }
        for bound in &item.supertraits {
            names.visit_type_param_bound(bound);
        }
        self.push_item(&item.ident, &item.vis, names.found);
        let owner = self.owner.replace(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.owner = owner;
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let outer = std::mem::take(&mut self.function);
        self.within(&item.attrs, |reader| {
            if let Some(block) = &item.default {
                reader.push_function(&item.sig, block);
            }
            visit::visit_trait_item_fn(reader, item);
        });
        self.function = outer;
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let place = self.at(item.impl_token.span);
        let self_type = type_name(&item.self_ty).unwrap_or_default();
        let mut names = Names::default();
        let mut members = Vec::new();
        for part in &item.items {
            if let syn::ImplItem::Type(associated) = part {
                names.visit_type(&associated.ty);
            }
            let (name, visibility, attributes, interface) = match part {
                syn::ImplItem::Fn(function) => {
                    (&function.sig.ident, &function.vis, &function.attrs, signature_names(&function.sig))
                }
                syn::ImplItem::Const(constant) => {
                    (&constant.ident, &constant.vis, &constant.attrs, BTreeSet::new())
                }
                _ => continue,
            };
            if is_public(visibility) && !attributes.iter().any(is_test) {
                let (place, name) = (self.at(name.span()), name.to_string());
                members.push(Item { place, name, public: true, interface, kind: ItemKind::Other });
            }
        }
        if let Some((described, _)) = &item.trait_ {
            names.visit_path(described);
        }
        let interface = names.found;
        self.facts.implementations.push(Implementation {
            place,
            self_type: self_type.clone(),
            members,
            interface,
        });
        let owner = self.owner.replace(self_type);
        visit::visit_item_impl(self, item);
        self.owner = owner;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let outer = std::mem::take(&mut self.function);
        self.within(&item.attrs, |reader| {
            reader.push_function(&item.sig, &item.block);
            visit::visit_impl_item_fn(reader, item);
        });
        self.function = outer;
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if item.ident == "_" {
            self.facts.asserts = true;
        } else {
            let place = self.at(item.ident.span());
            let type_name = constant_type(&item.ty);
            self.facts.constants.push(Constant { place, name: item.ident.to_string(), type_name });
            if self.function.is_empty() {
                self.push_item(&item.ident, &item.vis, BTreeSet::new());
            }
        }
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.push_item(&item.ident, &item.vis, BTreeSet::new());
        visit::visit_item_static(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let Some(name) = &item.ident {
            let (place, public) = (
                self.at(name.span()),
                item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")),
            );
            let (name, interface) = (name.to_string(), BTreeSet::new());
            self.facts.items.push(Item { place, name, public, interface, kind: ItemKind::Macro });
        }
        visit::visit_item_macro(self, item);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.read_tokens(&called.tokens);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.push_reference(parts, line);
        visit::visit_path(self, path);
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {
        // `pub(in path)` names a module around this one, and imports nothing.
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        self.read_match(expression);
        visit::visit_expr_match(self, expression);
    }
}

fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
