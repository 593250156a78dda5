//! Calls of built-in functions, and of the functions that are passed to them.

use super::known::{Function, Known};
use super::results::{habit_of, has_key, put, result_types, selected, tested, type_test};
use super::shape::{Shape, Types, joined, name_of};
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
        let habit = habit_of(row.name, &arguments);
        let result = match self.of_functions(row.name, &arguments, span) {
            Some(result) => Some(result),
            None => {
                self.escape_all(&arguments);
                self.of_values(row.name, &arguments, span)
            }
        };
        let result = result.unwrap_or_else(|| Known::types(result_types(row.name, count)));
        Known { habit, ..result }
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
                let test = self.call_with_elements(first, list, span);
                self.excuse_no_map(&test);
                Known::of(Shape::list(list.shape.element()))
            }
            ("take-while" | "drop-while", [list]) => {
                let test = self.call_with_some(first, list, span);
                self.excuse_no_map(&test);
                Known::of(Shape::list(list.shape.element()))
            }
            ("some" | "every?" | "not-any?" | "not-every?", [list]) => {
                let result = self.call_with_some(first, list, span);
                self.excuse_no_map(&result);
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
            ("update-vals", [function]) => self.with_values(first, function, span),
            _ => return None,
        })
    }

    /// Returns the function that one makes of others; `None` for one that makes none.
    fn made_of(&mut self, name: &str, arguments: &[Known<'p>]) -> Option<Known<'p>> {
        let (first, rest) = arguments.split_first()?;
        Some(Known::function(match name {
            // Of one alone it is that, whatever it is.
            "comp" if rest.is_empty() => return Some(first.clone()),
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
            Known { exact: is_exact.then_some(pass), missed: result.missed, ..Known::of(result.shape) }
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
            "partition-by" => Shape::lists(element),
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
                            // Of one alone it is that, and the list may be empty.
                            "concat" if before.len() < 2 => Known::unknown(),
                            "concat" => Known::types(Types::LIST),
                            _ => Known::types(result_types(name, before.len()) | result_types(name, 2)),
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

    /// `update-vals`
    fn with_values(&mut self, map: &Known<'p>, function: &Known<'p>, span: Span) -> Known<'p> {
        let value = map.shape.element().nth(1);
        let value = self.call_shape(function, false, vec![Known::of(value)], span).shape;
        Known::of(match map.shape.fields.as_deref() {
            _ if !map.shape.types.is_within(Types::MAP | Types::NIL) => Shape::UNKNOWN,
            Some(fields) if map.shape.types == Types::MAP => {
                let mut fields = fields.clone();
                fields.known.iter_mut().for_each(|(_, field)| field.shape = value.clone());
                if let Some((_, other)) = &mut fields.others {
                    *other = value;
                }
                Shape::of_fields(fields)
            }
            _ => Shape::map_of(Shape::UNKNOWN, value).or_nil(),
        })
    }

    /// Functions that call no others.
    fn of_values(&mut self, name: &str, arguments: &[Known<'p>], span: Span) -> Option<Known<'p>> {
        self.spend(arguments.iter().map(|value| value.shape.weight()).sum());
        if name == "merge" {
            // Each key is compared with those that are spelt like it.
            let keys = || arguments.iter().map(|value| value.shape.keys());
            self.spend_on(keys().sum::<usize>() * keys().max().unwrap_or_default() / 16);
        }
        let shape = match (name, arguments) {
            ("=" | "not=", [a, b]) => {
                self.compare(a, b, span);
                return Some(Known::test(None));
            }
            (_, [value]) if tested(name).is_some() => {
                self.excuse_no_map(value);
                return tested(name).map(|types| type_test(value, types));
            }
            ("not", [value]) => {
                self.excuse_no_map(value);
                return Some(Known { missed: value.missed.clone(), ..Known::test(value.holds().map(|holds| !holds)) });
            }
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
                    None => Known::of(self.at_any_key(&map.shape, key)),
                };
                return Some(self.or_default(value, rest.first()));
            }
            ("get-in", [map, path, rest @ ..]) => return Some(self.at_path(map, path, rest.first(), span)),
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
                // A key that is removed is one that is there, but one or many may be removed to be sure, as in a branch.
                self.arms += 1;
                for (key, _) in keys.iter().filter_map(|key| key.constant) {
                    self.at_key(&map.shape, key, span);
                }
                self.arms -= 1;
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

    /// Returns the value at a path, or the default in its place if there is one.
    fn at_path(&mut self, map: &Known<'p>, path: &Known<'p>, default: Option<&Known<'p>>, span: Span) -> Known<'p> {
        let Some((Constant::Vector(path), _)) = path.constant else { return Known::unknown() };
        self.spend_on(path.len());
        let mut value = Known { exact: map.exact, ..Known::of(map.shape.clone()) };
        for key in path {
            value = self.read(&value, key, span);
            if default.is_some() {
                self.excuse_no_map(&value);
            }
        }
        self.or_default(value, default)
    }

    /// Returns a value, or the default in its place if there is one.
    pub(super) fn or_default(&mut self, value: Known<'p>, default: Option<&Known<'p>>) -> Known<'p> {
        match default {
            None => value,
            Some(default) => {
                self.excuse_no_map(&value);
                self.join(value, default.clone())
            }
        }
    }

    /// Returns the value at a key that is not known.
    pub(super) fn at_any_key(&self, map: &Shape, key: &Known<'p>) -> Shape {
        // A list is a path.
        if key.shape.types.may_be(Types::LIST)
            || map.is_never()
            || !map.types.is_within(Types::MAP | Types::LIST | Types::NIL)
        {
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
}

/// Returns a list of the results of a function.
fn listed(result: Known<'_>, element: impl FnOnce(Shape) -> Shape) -> Known<'_> {
    Known { exact: result.exact, ..Known::of(Shape::list(element(result.shape))) }
}
