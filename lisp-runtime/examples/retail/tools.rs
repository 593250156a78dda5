//! The shop and what its tools do to it, in plain Rust: nothing here knows of programs, schemas or policies.
//!
//! The rules are those of tau-bench's retail environment, whose tables these are. The reason of a failure is what the environment
//! writes behind "Error: ".

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The answer of a tool, or why there is none.
pub(crate) type Answer = Result<Value, String>;
/// Rows by their id.
type Table = Map<String, Value>;

/// The whole database.
#[derive(Clone, PartialEq, Serialize)]
pub(crate) struct Shop {
    pub(crate) users: Table,
    pub(crate) orders: Table,
    pub(crate) products: Table,
}

impl Shop {
    /// Does what the tool of this name does. A tool that fails leaves the shop as it was.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Answer {
        let text = |key: &str| arguments[key].as_str().ok_or_else(|| format!("{key} should be a string"));
        let texts = |key: &str| -> Result<Vec<&str>, String> {
            let strings = arguments[key].as_array().map(|all| all.iter().map(Value::as_str).collect());
            strings.flatten().ok_or_else(|| format!("{key} should be an array of strings"))
        };
        let address = || -> Answer {
            let parts = ["address1", "address2", "city", "state", "country", "zip"];
            parts.into_iter().map(|part| Ok((part.to_owned(), json!(text(part)?)))).collect()
        };
        match name {
            "calculate" => calculated(text("expression")?),
            "cancel_pending_order" => self.cancel(text("order_id")?, text("reason")?),
            "exchange_delivered_order_items" => {
                let (old, new) = (texts("item_ids")?, texts("new_item_ids")?);
                self.exchange(text("order_id")?, old, new, text("payment_method_id")?)
            }
            "find_user_id_by_email" => self.find_user(&[("/email", text("email")?)]),
            "find_user_id_by_name_zip" => self.find_user(&[
                ("/name/first_name", text("first_name")?),
                ("/name/last_name", text("last_name")?),
                ("/address/zip", text("zip")?),
            ]),
            "get_order_details" => row(&mut self.orders, text("order_id")?, "order").cloned(),
            "get_product_details" => row(&mut self.products, text("product_id")?, "product").cloned(),
            "get_user_details" => row(&mut self.users, text("user_id")?, "user").cloned(),
            "list_all_product_types" => {
                let named =
                    |product: &Value| Some((product["name"].as_str()?.to_owned(), product["product_id"].clone()));
                Ok(self.products.values().filter_map(named).collect())
            }
            "modify_pending_order_address" => {
                let order = order_in(&mut self.orders, text("order_id")?, "pending", "modified")?;
                order["address"] = address()?;
                Ok(order.clone())
            }
            "modify_pending_order_items" => {
                let (old, new) = (texts("item_ids")?, texts("new_item_ids")?);
                self.modify_items(text("order_id")?, &old, &new, text("payment_method_id")?)
            }
            "modify_pending_order_payment" => self.modify_payment(text("order_id")?, text("payment_method_id")?),
            "modify_user_address" => {
                let user = row(&mut self.users, text("user_id")?, "user")?;
                user["address"] = address()?;
                Ok(user.clone())
            }
            "return_delivered_order_items" => {
                self.take_back(text("order_id")?, texts("item_ids")?, text("payment_method_id")?)
            }
            "think" => Ok(json!("")),
            "transfer_to_human_agents" => Ok(json!("Transfer successful")),
            _ => Err(format!("there is no tool {name}")),
        }
    }

    /// Whose order it is.
    pub(crate) fn owner(&self, order_id: &str) -> Option<&str> {
        self.orders.get(order_id)?["user_id"].as_str()
    }

    /// What these items of an order cost together.
    pub(crate) fn worth(&self, order_id: &str, item_ids: &[String]) -> f64 {
        let items = self.orders.get(order_id).into_iter().flat_map(|order| list(order, "items"));
        let asked = items.filter(|item| item_ids.iter().any(|id| item["item_id"] == **id));
        asked.map(|item| number(&item["price"])).sum()
    }

    /// The id of the user who has all this, in capitals or not.
    fn find_user(&self, wanted: &[(&str, &str)]) -> Answer {
        let has = |user: &Value, path: &str, text: &str| {
            user.pointer(path).and_then(Value::as_str).is_some_and(|found| found.to_lowercase() == text.to_lowercase())
        };
        let mut users = self.users.iter();
        let found = users.find(|(_, user)| wanted.iter().all(|(path, text)| has(user, path, text)));
        found.map(|(user_id, _)| json!(user_id)).ok_or_else(|| "user not found".to_owned())
    }

    fn cancel(&mut self, order_id: &str, reason: &str) -> Answer {
        let order = order_in(&mut self.orders, order_id, "pending", "cancelled")?;
        if !["no longer needed", "ordered by mistake"].contains(&reason) {
            return Err("invalid reason".to_owned());
        }
        for payment in list(order, "payment_history").to_vec() {
            let id = payment["payment_method_id"].as_str().unwrap_or_default();
            if let Ok(method) = method_of(&mut self.users, order, id) {
                receive(method, number(&payment["amount"]));
            }
            note(order, "refund", number(&payment["amount"]), id);
        }
        order["status"] = json!("cancelled");
        order["cancel_reason"] = json!(reason);
        Ok(order.clone())
    }

    fn exchange<'a>(&mut self, order_id: &str, mut old: Vec<&'a str>, mut new: Vec<&'a str>, method: &str) -> Answer {
        let order = order_in(&mut self.orders, order_id, "delivered", "exchanged")?;
        let difference = round(difference(order, &old, &new, &self.products)?);
        afford(method_of(&mut self.users, order, method)?, difference, "price difference")?;
        old.sort_unstable();
        new.sort_unstable();
        order["status"] = json!("exchange requested");
        order["exchange_items"] = json!(old);
        order["exchange_new_items"] = json!(new);
        order["exchange_payment_method_id"] = json!(method);
        order["exchange_price_difference"] = json!(difference);
        Ok(order.clone())
    }

    fn modify_items(&mut self, order_id: &str, old: &[&str], new: &[&str], method_id: &str) -> Answer {
        let order = order_in(&mut self.orders, order_id, "pending", "modified")?;
        let difference = difference(order, old, new, &self.products)?;
        let method = method_of(&mut self.users, order, method_id)?;
        afford(method, difference, "new item")?;
        receive(method, -difference);
        note(order, if difference > 0.0 { "payment" } else { "refund" }, difference.abs(), method_id);
        for (old, new) in old.iter().zip(new) {
            let mut items = order["items"].as_array_mut().into_iter().flatten();
            let Some(item) = items.find(|item| item["item_id"] == **old) else { continue };
            let Some(variant) = variant(&self.products, item, new) else { continue };
            for field in ["item_id", "price", "options"] {
                item[field] = variant[field].clone();
            }
        }
        order["status"] = json!("pending (item modified)");
        Ok(order.clone())
    }

    fn modify_payment(&mut self, order_id: &str, new: &str) -> Answer {
        let order = order_in(&mut self.orders, order_id, "pending", "modified")?;
        let method = method_of(&mut self.users, order, new)?;
        let payment = match list(order, "payment_history") {
            [payment] if payment["transaction_type"] == "payment" => payment.clone(),
            _ => return Err("there should be exactly one payment for a pending order".to_owned()),
        };
        let (amount, old) = (number(&payment["amount"]), payment["payment_method_id"].as_str().unwrap_or_default());
        if old == new {
            return Err("the new payment method should be different from the current one".to_owned());
        }
        afford(method, amount, "order")?;
        receive(method, -amount);
        if let Ok(method) = method_of(&mut self.users, order, old) {
            receive(method, amount);
        }
        note(order, "payment", amount, new);
        note(order, "refund", amount, old);
        Ok(order.clone())
    }

    fn take_back(&mut self, order_id: &str, mut item_ids: Vec<&str>, method: &str) -> Answer {
        let order = order_in(&mut self.orders, order_id, "delivered", "returned")?;
        method_of(&mut self.users, order, method)?;
        if !method.contains("gift_card") && order["payment_history"][0]["payment_method_id"] != *method {
            return Err("payment method should be either the original payment method or a gift card".to_owned());
        }
        if lacks(order, &item_ids).is_some() {
            return Err("some item not found".to_owned());
        }
        item_ids.sort_unstable();
        order["status"] = json!("return requested");
        order["return_items"] = json!(item_ids);
        order["return_payment_method_id"] = json!(method);
        Ok(order.clone())
    }
}

fn row<'a>(table: &'a mut Table, id: &str, what: &str) -> Result<&'a mut Value, String> {
    table.get_mut(id).ok_or_else(|| format!("{what} not found"))
}

fn order_in<'a>(orders: &'a mut Table, id: &str, status: &str, done: &str) -> Result<&'a mut Value, String> {
    let order = row(orders, id, "order")?;
    if order["status"] == *status { Ok(order) } else { Err(format!("non-{status} order cannot be {done}")) }
}

/// One of the payment methods of the user whose order it is.
fn method_of<'a>(users: &'a mut Table, order: &Value, id: &str) -> Result<&'a mut Value, String> {
    let user = order["user_id"].as_str().and_then(|user_id| users.get_mut(user_id));
    let method = user.and_then(|user| user["payment_methods"].get_mut(id));
    method.ok_or_else(|| "payment method not found".to_owned())
}

fn afford(method: &Value, amount: f64, what: &str) -> Result<(), String> {
    match method["balance"].as_f64() {
        Some(balance) if balance < amount => Err(format!("insufficient gift card balance to pay for the {what}")),
        _ => Ok(()),
    }
}

/// Puts an amount on a gift card, or takes a negative one from it; other methods have no balance.
fn receive(method: &mut Value, amount: f64) {
    if let Some(balance) = method["balance"].as_f64() {
        method["balance"] = json!(round(balance + amount));
    }
}

/// Notes a payment or a refund in the history of an order.
fn note(order: &mut Value, kind: &str, amount: f64, method: &str) {
    let line = json!({"transaction_type": kind, "amount": amount, "payment_method_id": method});
    order["payment_history"].as_array_mut().into_iter().for_each(|history| history.push(line.clone()));
}

/// The first of these items that the order has not, or not so often.
fn lacks<'a>(order: &Value, item_ids: &[&'a str]) -> Option<&'a str> {
    let asked = |id: &str| item_ids.iter().filter(|other| **other == id).count();
    let there = |id: &str| list(order, "items").iter().filter(|item| item["item_id"] == *id).count();
    item_ids.iter().copied().find(|id| asked(id) > there(id))
}

/// How much more the new items cost than the old ones, if they can be had.
fn difference(order: &Value, old: &[&str], new: &[&str], products: &Table) -> Result<f64, String> {
    if let Some(item_id) = lacks(order, old) {
        return Err(format!("{item_id} not found"));
    }
    if old.len() != new.len() {
        return Err("the number of items to be exchanged should match".to_owned());
    }
    let prices = old.iter().zip(new).map(|(old, new)| {
        let item = list(order, "items").iter().find(|item| item["item_id"] == **old);
        let sold = item.and_then(|item| Some((item, variant(products, item, new)?)));
        match sold.filter(|(_, variant)| variant["available"] == true) {
            Some((item, variant)) => Ok(number(&variant["price"]) - number(&item["price"])),
            None => Err(format!("new item {new} not found or available")),
        }
    });
    prices.sum()
}

/// The product of an item in another form.
fn variant<'a>(products: &'a Table, item: &Value, id: &str) -> Option<&'a Value> {
    products.get(item["product_id"].as_str()?)?["variants"].get(id)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// To cents, from the exact value of the number.
fn round(amount: f64) -> f64 {
    format!("{amount:.2}").parse().unwrap_or(amount)
}

/// What an expression such as `2 * (3.5 - 1)` comes to, as text, to cents.
fn calculated(expression: &str) -> Answer {
    if !expression.bytes().all(|byte| b"0123456789+-*/(). ".contains(&byte)) {
        return Err("invalid characters in expression".to_owned());
    }
    let mut rest = expression;
    match sum(&mut rest, 0, 0)? {
        value if rest.is_empty() => Ok(json!(format!("{:?}", round(value)))),
        _ => Err("invalid syntax".to_owned()),
    }
}

/// Reads on, up to an operator that binds less than `least`.
fn sum(rest: &mut &str, least: u8, depth: usize) -> Result<f64, String> {
    *rest = rest.trim_start();
    let mut value = if depth > 50 {
        return Err("too many nested parentheses".to_owned());
    } else if let Some(inner) = rest.strip_prefix('(') {
        *rest = inner;
        let value = sum(rest, 0, depth + 1)?;
        *rest = rest.strip_prefix(')').ok_or("'(' was never closed")?;
        value
    } else if let Some(negated) = rest.strip_prefix('-') {
        *rest = negated;
        -sum(rest, 2, depth + 1)?
    } else {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, after) = rest.split_at(digits);
        *rest = after;
        number.parse().map_err(|_| "invalid syntax")?
    };
    loop {
        *rest = rest.trim_start();
        let (operator, binds) = match rest.bytes().next() {
            Some(operator @ (b'+' | b'-')) => (operator, 0),
            Some(operator @ (b'*' | b'/')) => (operator, 1),
            _ => return Ok(value),
        };
        if binds < least {
            return Ok(value);
        }
        *rest = &rest[1..];
        let next = sum(rest, binds + 1, depth + 1)?;
        value = match operator {
            b'+' => value + next,
            b'-' => value - next,
            b'*' => value * next,
            _ if next == 0.0 => return Err("division by zero".to_owned()),
            _ => value / next,
        };
    }
}
