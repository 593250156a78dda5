//! The shapes of the results of built-in functions, and the calls of functions that are passed to them.

use super::known::{Function, Habit, Known};
use super::shape::{Fields, Shape, Types, joined, name_of};
use super::walk::Checker;
use crate::code::BuiltinId;
use crate::compile::core::Constant;
use crate::error::Span;

/// The maximum number of constants for which a function is followed one by one.
const MAX_ONE_BY_ONE: usize = 8;

impl<'p> Checker<'p> {
    /// Calls a built-in function. Functions among the arguments of one that is not known here may be called with anything.
    pub(super) fn builtin(&mut self, id: BuiltinId, arguments: Vec<Known<'p>>, span: Span) -> Known<'p> {
        let row = self.rows.row(id);
        let count = arguments.len();
        if count < usize::from(row.min) || (row.max != crate::builtins::MANY && count > usize::from(row.max)) {
            self.escape_all(&arguments);
            return Known::unknown();
        }
        if arguments.iter().any(|value| value.shape.is_never()) {
            // What is passed to it is never there, so that it is not called.
            self.escape_all(&arguments);
            return Known::never();
        }
        self.operands(row.name, &arguments, span);
        let result = match self.of_functions(row.name, &arguments, span) {
            Some(result) => Some(result),
            None => {
                self.escape_all(&arguments);
                self.of_values(row.name, &arguments, span)
            }
        };
        let result = result.unwrap_or_else(|| Known::types(result_types(row.name, count)));
        Known { habit: habit_of(row.name, count), ..result }
    }

    /// Functions that call others, or make functions of others; `None` for all other functions.
    fn of_functions(&mut self, name: &str, arguments: &[Known<'p>], span: Span) -> Option<Known<'p>> {
        if let Some(function) = self.made_of(name, arguments) {
            return Some(function);
        }
        let (first, rest) = arguments.split_first()?;
        Some(match (name, rest) {
            ("memoize" | "identity", []) => first.clone(),
            ("map" | "mapv" | "pmap" | "mapcat" | "keep", [_, ..]) => self.mapped(name, first, rest, span),
            ("map-indexed" | "keep-indexed", [list]) => {
                let arguments = vec![Known::types(Types::INT), self.element(list)];
                let result = self.call_shape(first, self.is_exact_list(list), arguments, span);
                listed(result, |shape| if name == "keep-indexed" { shape.without_nil() } else { shape })
            }
            ("filter" | "filterv" | "remove", [list]) => {
                self.call_with_elements(first, list, span);
                Known::of(Shape::list(list.shape.element()))
            }
            ("take-while" | "drop-while", [list]) => {
                self.call_with_some(first, list, span);
                Known::of(Shape::list(list.shape.element()))
            }
            ("some" | "every?" | "not-any?" | "not-every?", [list]) => {
                let result = self.call_with_some(first, list, span);
                match name {
                    "some" => Known::of(result.shape.or_nil()),
                    _ => Known::test(None),
                }
            }
            ("sort", [list]) => {
                self.escape(list);
                let element = self.element(list);
                self.call_shape(first, false, vec![element.clone(), element.clone()], span);
                Known::of(Shape::list(element.shape))
            }
            ("sort-by" | "distinct-by" | "partition-by" | "group-by", _) => self.arranged(name, first, rest, span)?,
            ("sum-by" | "avg-by", [list]) => {
                let number = self.call_with_elements(first, list, span);
                self.operand(name, &[&number], span);
                Known::types(Types::NUMBER | Types::NIL)
            }
            ("min-by" | "max-by", [list]) => {
                let key = self.call_with_elements(first, list, span);
                self.order(name, &key, span);
                Known::of(list.shape.element().or_nil())
            }
            ("max-key" | "min-key", [_, ..]) => {
                let shape = joined(&rest.iter().map(|value| value.shape.clone()).collect::<Vec<_>>());
                self.call_shape(first, false, vec![Known::of(shape.clone())], span);
                Known::of(shape)
            }
            ("reduce", [_, ..]) => self.reduced(first, rest, span),
            ("reduce-kv", [init, map]) => {
                let entry = map.shape.element();
                self.folded(first, init.clone(), false, vec![Known::of(entry.nth(0)), Known::of(entry.nth(1))], span)
            }
            ("apply", [.., list]) if list.function.is_none() => {
                let before = &rest[..rest.len() - 1];
                self.applied(first, before, list, span)
            }
            ("update" | "update-in", [..]) if rest.len() >= 2 => self.updated(name, first, rest, span),
            ("update-vals", [function]) => {
                let value = first.shape.element().nth(1);
                let value = self.call_shape(function, false, vec![Known::of(value)], span).shape;
                Known::of(match first.shape.fields.as_deref() {
                    Some(fields) if first.shape.types == Types::MAP => {
                        let mut fields = fields.clone();
                        fields.known.iter_mut().for_each(|(_, field)| field.shape = value.clone());
                        if let Some((_, other)) = &mut fields.others {
                            *other = value;
                        }
                        Shape::of_fields(fields)
                    }
                    _ => Shape::map_of(Shape::UNKNOWN, value),
                })
            }
            _ => return None,
        })
    }

    /// Returns the function that one makes of others; `None` for one that makes none.
    fn made_of(&mut self, name: &str, arguments: &[Known<'p>]) -> Option<Known<'p>> {
        let (first, rest) = arguments.split_first()?;
        Some(Known::function(match name {
            "comp" => Function::Composed(arguments.to_vec()),
            "partial" => Function::Partial(first.clone(), rest.to_vec()),
            "juxt" => Function::Juxtaposed(arguments.to_vec()),
            "complement" | "every-pred" | "some-fn" => Function::Tests(arguments.to_vec()),
            "constantly" => Function::Constant(first.clone()),
            "fnil" => {
                self.escape_all(rest);
                Function::WithDefaults(first.clone())
            }
            _ => return None,
        }))
    }

    fn element(&mut self, list: &Known<'p>) -> Known<'p> {
        self.spend(list.shape.weight());
        Known { exact: list.exact, ..Known::of(list.shape.element()) }
    }

    /// Calls a function and returns its result, which is no longer followed. `is_exact` says that it is called with arguments of
    /// each of the types, where these are exact.
    fn call_shape(
        &mut self,
        function: &Known<'p>,
        is_exact: bool,
        mut arguments: Vec<Known<'p>>,
        span: Span,
    ) -> Known<'p> {
        let pass = self.pass;
        self.conditional += 1;
        let result = self.pass(is_exact, |checker| {
            for argument in &mut arguments {
                argument.exact = (is_exact && argument.exact == Some(pass)).then_some(checker.pass);
            }
            let result = checker.call(function, arguments, span);
            checker.escape(&result);
            let is_exact = is_exact && result.exact == Some(checker.pass);
            Known { exact: is_exact.then_some(pass), ..Known::of(result.shape) }
        });
        self.conditional -= 1;
        result
    }

    /// Calls a function with all elements of a list.
    fn call_with_elements(&mut self, function: &Known<'p>, list: &Known<'p>, span: Span) -> Known<'p> {
        self.call_each(function, list, self.is_exact_list(list), span)
    }

    /// Calls a function with the elements of a list until it is clear what they are.
    fn call_with_some(&mut self, function: &Known<'p>, list: &Known<'p>, span: Span) -> Known<'p> {
        self.call_each(function, list, false, span)
    }

    fn call_each(&mut self, function: &Known<'p>, list: &Known<'p>, is_exact: bool, span: Span) -> Known<'p> {
        self.escape(list);
        if let Some((Constant::Vector(items), at)) = list.constant
            && (1..=MAX_ONE_BY_ONE).contains(&items.len())
        {
            // Keys in a vector: each is looked up.
            let call = |item: &'p Constant| {
                let item = self.constant(item, at);
                self.call_shape(function, is_exact, vec![item], span).shape
            };
            return Known::of(joined(&items.iter().map(call).collect::<Vec<_>>()));
        }
        let element = self.element(list);
        // The elements of an empty list are not there, and the function is not called.
        match element.shape.is_never() {
            true => {
                self.escape(function);
                Known::never()
            }
            false => self.call_shape(function, is_exact, vec![element], span),
        }
    }

    fn mapped(&mut self, name: &str, function: &Known<'p>, lists: &[Known<'p>], span: Span) -> Known<'p> {
        self.escape_all(lists);
        let result = match lists {
            [list] => self.call_with_elements(function, list, span),
            lists => {
                let elements = lists.iter().map(|list| self.element(list)).collect();
                self.call_shape(function, false, elements, span)
            }
        };
        listed(result, |shape| match name {
            "mapcat" => shape.element(),
            "keep" => shape.without_nil(),
            _ => shape,
        })
    }

    fn arranged(&mut self, name: &str, key: &Known<'p>, rest: &[Known<'p>], span: Span) -> Option<Known<'p>> {
        let list = match (name, rest) {
            (_, [list]) => list,
            ("sort-by", [order, list]) => {
                self.escape(order);
                list
            }
            _ => return None,
        };
        let key = self.call_with_elements(key, list, span);
        if let ("sort-by", [_]) = (name, rest) {
            self.order(name, &key, span);
        }
        let element = list.shape.element();
        let exact = list.exact.filter(|_| name != "distinct-by" && (name != "group-by" || key.exact.is_some()));
        let shape = match name {
            "group-by" => Shape::map_of(key.shape, Shape::list(element)),
            "partition-by" => Shape::list(Shape::list(element)),
            _ => Shape::list(element),
        };
        Some(Known { exact, ..Known::of(shape) })
    }

    fn reduced(&mut self, function: &Known<'p>, rest: &[Known<'p>], span: Span) -> Known<'p> {
        match rest {
            [list] => {
                self.escape(list);
                let element = self.element(list);
                // With one element alone it is not called: in a part that runs several times, perhaps with one each time.
                let is_exact = self.is_exact_list(list) && element.shape.types.are_several() && self.pass == 0;
                let folded = self.folded(function, element.clone(), is_exact, vec![element], span);
                // Of an empty list it is what the function returns without arguments.
                self.join(folded, Known::unknown())
            }
            [init, list] => {
                self.escape(list);
                let element = self.element(list);
                if element.shape.is_never() {
                    self.escape(function);
                    return init.clone();
                }
                self.folded(function, init.clone(), self.is_exact_list(list), vec![element], span)
            }
            _ => Known::unknown(),
        }
    }

    /// Calls a function with what it has returned before.
    fn folded(
        &mut self,
        function: &Known<'p>,
        init: Known<'p>,
        is_exact: bool,
        more: Vec<Known<'p>>,
        span: Span,
    ) -> Known<'p> {
        self.escape(&init);
        let mut value = Known::of(init.shape);
        let call = |checker: &mut Self, value: &Known<'p>| {
            let arguments = std::iter::once(value.clone()).chain(more.iter().cloned()).collect();
            Known::of(checker.call_shape(function, is_exact, arguments, span).shape)
        };
        self.silent += 1;
        for round in 0..3 {
            let next = call(self, &value);
            let next = self.join(value.clone(), next);
            if next.shape == value.shape {
                break;
            }
            value = if round == 2 { Known::unknown() } else { next };
        }
        self.silent -= 1;
        let last = call(self, &value);
        self.join(value, last)
    }

    fn applied(&mut self, function: &Known<'p>, before: &[Known<'p>], list: &Known<'p>, span: Span) -> Known<'p> {
        match &list.shape.items {
            super::shape::Items::Each(each) if list.shape.types == Types::LIST => {
                let arguments = before.iter().cloned().chain(each.iter().cloned().map(Known::of)).collect();
                self.call(function, arguments, span)
            }
            _ => {
                self.escape(function);
                self.escape_all(before);
                // The result of a function that takes any number of arguments like one.
                match function.function.as_deref() {
                    Some(Function::Builtin(id)) => {
                        let name = self.rows.row(*id).name;
                        let element = self.element(list);
                        let is_exact = before.is_empty() && self.is_exact_list(list);
                        self.operand(name, &[&Known { exact: element.exact.filter(|_| is_exact), ..element }], span);
                        match name {
                            "concat" => Known::of(Shape::list(list.shape.element().element())),
                            _ => Known::types(result_types(name, 2)),
                        }
                    }
                    _ => Known::unknown(),
                }
            }
        }
    }

    /// `update` and `update-in`: the function is called with the value, which may be missing.
    fn updated(&mut self, name: &str, map: &Known<'p>, rest: &[Known<'p>], span: Span) -> Known<'p> {
        let (path, function, more) = (&rest[0], &rest[1], &rest[2..]);
        self.escape(map);
        let (Some((key, _)), "update") = (path.constant, name) else {
            self.escape(function);
            self.escape_all(more);
            return Known::types(Types::MAP | Types::LIST);
        };
        // A new key is no mistake: counters start like this.
        let value = match (name_of(key), map.shape.fields.as_deref()) {
            (Some(name), Some(fields)) if map.shape.types.is_within(Types::MAP | Types::NIL) => match fields.get(&name)
            {
                _ if fields.has_other_spelling(&name) => Shape::UNKNOWN,
                Some(field) => field.shape.clone().or_nil(),
                None => fields.others.as_ref().map_or(Shape::of(Types::NIL), |(_, value)| value.clone().or_nil()),
            },
            _ => Shape::UNKNOWN,
        };
        let arguments = std::iter::once(Known::of(value)).chain(more.iter().cloned()).collect();
        let value = self.call_shape(function, false, arguments, span).shape;
        Known::of(put(&map.shape, name_of(key), value))
    }

    /// Functions that call no others.
    fn of_values(&mut self, name: &str, arguments: &[Known<'p>], span: Span) -> Option<Known<'p>> {
        self.spend(arguments.iter().map(|value| value.shape.weight()).sum());
        let shape = match (name, arguments) {
            ("=" | "not=", [a, b]) => {
                self.compare(a, b, span);
                return Some(Known::test(None));
            }
            (_, [value]) if tested(name).is_some() => return tested(name).map(|types| type_test(value, types)),
            ("contains?", [set, value]) => {
                match set.constant {
                    Some((Constant::Set(members), at)) => self.compare_with_all(value, members.iter(), at),
                    _ => self.index_for_member(set, value, span),
                }
                return Some(Known::test(has_key(&set.shape, value)));
            }
            ("get", [map, key, rest @ ..]) => {
                let value = match key.constant {
                    Some((constant, _)) => self.read(map, constant, span),
                    None => Known::of(self.at_any_key(&map.shape)),
                };
                return Some(match rest.first() {
                    None => value,
                    Some(default) => self.join(value, default.clone()),
                });
            }
            ("get-in", [map, path, rest @ ..]) => {
                let Some((Constant::Vector(path), _)) = path.constant else { return Some(Known::unknown()) };
                self.spend_on(path.len());
                let mut value = Known { exact: map.exact, ..Known::of(map.shape.clone()) };
                for key in path {
                    value = self.read(&value, key, span);
                }
                return Some(match rest.first() {
                    None => value,
                    Some(default) => self.join(value, default.clone()),
                });
            }
            ("select-keys", [map, keys]) => {
                if let Some((Constant::Vector(keys), _)) = keys.constant {
                    self.spend_on(keys.len());
                    let before = self.found.len();
                    let missed: Vec<_> =
                        keys.iter().filter_map(|key| self.at_key(&map.shape, key, span).missed).collect();
                    self.excuse_missed(missed.iter(), before);
                    return Some(Known::of(selected(&map.shape, keys)));
                }
                Shape::of(Types::MAP)
            }
            ("clojure.set/project" | "clojure.set/index", [set, keys]) => {
                if let Some((Constant::Vector(keys), _)) = keys.constant {
                    self.spend_on(keys.len());
                    let element = set.shape.element();
                    for key in keys {
                        self.at_key(&element, key, span);
                    }
                }
                return None;
            }
            ("dissoc", [map, keys @ ..]) => {
                // A key that is removed is one that is there.
                for (key, _) in keys.iter().filter_map(|key| key.constant) {
                    self.at_key(&map.shape, key, span);
                }
                self.of_maps(name, arguments)?
            }
            ("int?" | "integer?", [value]) => {
                self.whole_quotient(name, value, span);
                return None;
            }
            _ => self.of_lists(name, arguments).or_else(|| self.of_maps(name, arguments))?,
        };
        let exact = match (name, arguments) {
            // Each element is still there.
            ("reverse" | "vec" | "doall" | "rseq" | "distinct" | "dedupe" | "sort" | "vals", [list]) => list.exact,
            _ => None,
        };
        Some(Known { exact, ..Known::of(shape) })
    }

    /// Returns the value at a key that is not known.
    fn at_any_key(&self, map: &Shape) -> Shape {
        if map.is_never() || !map.types.is_within(Types::MAP | Types::LIST | Types::NIL) {
            return Shape::UNKNOWN;
        }
        let value = match map.types.may_be(Types::MAP) {
            true => map.only(Types::MAP).element().nth(1),
            false => Shape::of(Types::NEVER),
        };
        match map.types.may_be(Types::LIST) {
            true => value.join(&map.only(Types::LIST).element()).or_nil(),
            false => value.or_nil(),
        }
    }

    fn of_lists(&mut self, name: &str, arguments: &[Known<'p>]) -> Option<Shape> {
        let list = &arguments.last()?.shape;
        let first = &arguments[0].shape;
        Some(match (name, arguments.len()) {
            ("first", 1) => list.nth(0),
            ("peek", 1) => list.element().or_nil(),
            ("second", 1) => list.nth(1),
            ("last", 1) => list.element().or_nil(),
            ("ffirst", 1) => list.nth(0).nth(0),
            ("nth", 2 | 3) => match arguments[1].constant {
                Some((Constant::Int(at), _)) if arguments.len() == 2 => {
                    first.nth(usize::try_from(*at).unwrap_or(usize::MAX))
                }
                _ => Shape::UNKNOWN,
            },
            ("rest", 1) => list.rest(1),
            ("next" | "nnext", 1) => Shape::list(list.element()).or_nil(),
            ("take" | "drop" | "take-last" | "drop-last" | "take-nth" | "nthrest", 2)
            | ("reverse" | "distinct" | "dedupe" | "butlast" | "sort" | "vec" | "doall" | "drop-last" | "rseq", 1) => {
                let list = if name == "nthrest" { first } else { list };
                Shape::list(list.element())
            }
            ("sort", 2) => Shape::list(list.element()),
            ("not-empty", 1) => list.clone().or_nil(),
            ("seq", 1) => Shape::list(list.element()).or_nil(),
            ("subvec", _) => Shape::list(first.element()),
            ("set", 1) => Shape::set(list.element()),
            ("partition" | "partition-all", _) => Shape::list(Shape::list(list.element())),
            ("split-at", 2) => Shape::list(Shape::list(list.element())),
            ("concat", _) => {
                let elements: Vec<Shape> = arguments.iter().map(|value| value.shape.element()).collect();
                Shape::list(joined(&elements))
            }
            ("cons", 2) => Shape::list(list.element().join(first)),
            ("conj", 2..) if first.types == Types::LIST => {
                Shape::list(arguments[1..].iter().fold(first.element(), |all, value| all.join(&value.shape)))
            }
            ("into", 2) if first.types == Types::LIST => Shape::list(first.element().join(&list.element())),
            ("into", 2) if first.types == Types::SET => Shape::set(first.element().join(&list.element())),
            ("into", 2) if first.types == Types::MAP => {
                let entry = list.element();
                if !entry.types.is_within(Types::LIST) {
                    return Some(Shape::of(Types::MAP));
                }
                let added = Fields::new(Vec::new(), Some((entry.nth(0), entry.nth(1))));
                match first.fields.as_deref() {
                    Some(fields) => Shape::of_fields(fields.merge(&added)),
                    None => Shape::of(Types::MAP),
                }
            }
            ("vector" | "list", _) => Shape::tuple(arguments.iter().map(|value| value.shape.clone()).collect()),
            ("hash-set", _) => {
                Shape::set(joined(&arguments.iter().map(|value| value.shape.clone()).collect::<Vec<_>>()))
            }
            ("frequencies", 1) => Shape::map_of(list.element(), Shape::of(Types::INT)),
            ("zip", 2) => Shape::list(Shape::tuple(vec![first.element(), list.element()])),
            ("range", _) => Shape::list(Shape::of(Types::NUMBER)),
            ("split" | "split-lines" | "re-split", _) => Shape::list(Shape::of(Types::STRING)),
            _ => return None,
        })
    }

    fn of_maps(&mut self, name: &str, arguments: &[Known<'p>]) -> Option<Shape> {
        let map = &arguments.first()?.shape;
        let is_map = map.types.is_within(Types::MAP | Types::NIL);
        Some(match name {
            "keys" if is_map => Shape::list(map.element().nth(0)),
            "vals" if is_map => Shape::list(map.element().nth(1)),
            "assoc" if arguments.len() % 2 == 1 && is_map => {
                let mut map = map.clone();
                for pair in arguments[1..].chunks_exact(2) {
                    let key = pair[0].constant.and_then(|(key, _)| name_of(key));
                    map = put(&map, key, pair[1].shape.clone());
                }
                map
            }
            "dissoc" if is_map => without_keys(map, &arguments[1..]),
            "merge" => {
                let mut merged: Option<Fields> = None;
                for argument in arguments {
                    if !argument.shape.types.is_within(Types::MAP | Types::NIL) {
                        return Some(Shape::UNKNOWN);
                    }
                    let mut fields = (*argument.shape.fields.clone()?).clone();
                    if argument.shape.types.may_be(Types::NIL) {
                        fields.known.iter_mut().for_each(|(_, field)| field.is_always = false);
                    }
                    merged = Some(match merged {
                        Some(before) => before.merge(&fields),
                        None => fields,
                    });
                }
                Shape::of_fields(merged?)
            }
            "zipmap" => Shape::map_of(map.element(), arguments.get(1)?.shape.element()),
            "hash-map" if arguments.len().is_multiple_of(2) => {
                Shape::of_entries(arguments.chunks_exact(2).map(|pair| {
                    let name = pair[0].constant.and_then(|(key, _)| name_of(key));
                    (name, pair[0].shape.clone(), pair[1].shape.clone())
                }))
            }
            _ => return None,
        })
    }
}

/// Returns a list of the results of a function.
fn listed(result: Known<'_>, element: impl FnOnce(Shape) -> Shape) -> Known<'_> {
    Known { exact: result.exact, ..Known::of(Shape::list(element(result.shape))) }
}

/// Returns what the result of a function is often mistaken for.
fn habit_of(name: &str, arguments: usize) -> Option<Habit> {
    match (name, arguments) {
        ("keys" | "vals" | "rest" | "reverse" | "distinct" | "sort" | "concat", 1)
        | (
            "re-seq" | "map" | "mapv" | "filter" | "filterv" | "remove" | "keep" | "mapcat" | "sort-by" | "take"
            | "drop" | "take-while" | "drop-while" | "split",
            2,
        ) => Some(Habit::List),
        ("/", _) => Some(Habit::Quotient),
        _ => None,
    }
}

/// Returns the shape of a map with one more entry.
fn put(map: &Shape, key: Option<std::sync::Arc<str>>, value: Shape) -> Shape {
    if !map.types.is_within(Types::MAP | Types::NIL) {
        return Shape::UNKNOWN;
    }
    let empty = || Fields::new(Vec::new(), None);
    let fields = match (map.types.may_be(Types::MAP), map.fields.as_deref()) {
        (true, None) => return Shape::of(Types::MAP),
        (true, Some(fields)) if map.types == Types::MAP => fields.clone(),
        (true, Some(fields)) => {
            let mut fields = fields.clone();
            fields.known.iter_mut().for_each(|(_, field)| field.is_always = false);
            fields
        }
        (false, _) => empty(),
    };
    Shape::of_fields(match key {
        Some(name) if fields.has_other_spelling(&name) => return Shape::of(Types::MAP),
        Some(name) => fields.with(&name, value),
        None => fields.merge(&Fields::new(Vec::new(), Some((Shape::UNKNOWN, value)))),
    })
}

/// Returns the shape of a map without some keys.
fn without_keys(map: &Shape, keys: &[Known<'_>]) -> Shape {
    let named = keys.iter().map(|key| key.constant.and_then(|(key, _)| name_of(key)));
    let (Some(fields), Some(names)) = (map.fields.as_deref(), named.collect::<Option<Vec<_>>>()) else {
        return Shape::of(Types::MAP | Types::NIL);
    };
    if names.iter().any(|name| fields.has_other_spelling(name)) {
        return Shape::of(Types::MAP | Types::NIL);
    }
    let mut fields = fields.clone();
    fields.known.retain(|(key, _)| !names.contains(key));
    let shape = Shape::of_fields(fields);
    if map.types.may_be(Types::NIL) { shape.or_nil() } else { shape }
}

fn selected(map: &Shape, keys: &[Constant]) -> Shape {
    let (true, Some(fields)) = (map.types == Types::MAP, map.fields.as_deref()) else { return Shape::of(Types::MAP) };
    if fields.others.is_some() || keys.iter().any(|key| name_of(key).is_none()) {
        return Shape::of(Types::MAP);
    }
    let names: Vec<_> = keys.iter().filter_map(name_of).collect();
    if names.iter().any(|name| fields.has_other_spelling(name)) {
        return Shape::of(Types::MAP);
    }
    let known = fields.known.iter().filter(|(key, _)| names.contains(key)).cloned().collect();
    Shape::of_fields(Fields::new(known, None))
}

/// Returns false if maps of this shape surely do not have a key.
fn has_key(map: &Shape, key: &Known<'_>) -> Option<bool> {
    let (fields, name) = (map.fields.as_deref()?, name_of(key.constant?.0)?);
    let is_absent = fields.read_by_keyword(&name).is_none() && fields.others.is_none();
    (is_absent && map.types.is_within(Types::MAP | Types::NIL)).then_some(false)
}

/// Returns the result of a test of a value that holds for these types, and for no others.
fn type_test<'p>(value: &Known<'p>, tested: Types) -> Known<'p> {
    let types = value.shape.types;
    let truth = match (types.is_within(tested), types.may_be(tested)) {
        _ if types == Types::NEVER => None,
        (true, _) => Some(true),
        (_, false) => Some(false),
        _ => None,
    };
    Known { missed: value.missed.clone(), ..Known::test(truth) }
}

/// Returns the types for which a test of one value holds, and for no others.
fn tested(name: &str) -> Option<Types> {
    Some(match name {
        "nil?" => Types::NIL,
        "some?" => Types::ANY.without(Types::NIL),
        "string?" => Types::STRING,
        "number?" => Types::NUMBER,
        "keyword?" => Types::KEYWORD,
        "map?" => Types::MAP,
        "set?" => Types::SET,
        "boolean?" => Types::BOOL,
        _ => return None,
    })
}

/// Returns the types of the results of functions whose results have few.
fn result_types(name: &str, arguments: usize) -> Types {
    match name {
        // Without a list these return a function of lists.
        "map" | "filter" | "remove" | "keep" | "mapcat" | "take" | "drop" | "take-while" | "drop-while"
        | "map-indexed"
            if arguments == 1 =>
        {
            Types::FN
        }
        "count" | "quot" | "compare" | "index-of" | "last-index-of" | "int" | "long" | "floor" | "ceil" | "round"
        | ".length" | "bit-and" | "bit-or" | "bit-xor" => match name {
            "index-of" | "last-index-of" => Types::INT | Types::NIL,
            "floor" | "ceil" | "round" => Types::NUMBER,
            _ => Types::INT,
        },
        "+" | "-" | "*" | "/" | "inc" | "dec" | "abs" | "mod" | "rem" | "sum" | "pow" => Types::NUMBER,
        "avg" | "median" | "percentile" => Types::NUMBER | Types::NIL,
        "str" | "join" | "upper-case" | "lower-case" | "capitalize" | "trim" | "triml" | "trimr" | "subs"
        | "pr-str" | "format" | "name" => Types::STRING,
        "keyword" | "key-word" => Types::KEYWORD | Types::NIL,
        "<" | ">" | "<=" | ">=" | "not" => Types::BOOL,
        "println" | "prn" | "print" => Types::NIL,
        _ if name.ends_with('?') => Types::BOOL,
        _ => Types::ANY,
    }
}
