"""A program that a model could have written, with a tool, an error that a model can repair, and an approval.

Run it with: python examples/python/shop.py
"""

import asyncio

from ptc_lisp import AskedCall, Decision, Engine, Limits, Suspended, allow, ask, tool

PRICES = {"KB-01": 49.5, "MS-02": 19.0}


@tool(effect="read")
async def price(sku: str) -> float:
    "Price of one item in euros."
    await asyncio.sleep(0.01)
    return PRICES[sku]


@tool(effect="write", max_calls=1)
def order(total: float) -> str:
    "Orders the basket. Returns the number of the order."
    return f"order over {total}"


def policy(call: AskedCall) -> Decision:
    if call.effect == "write" and call.arguments["total"] > 50:
        return ask(f"order for {call.arguments['total']} euros?")
    return allow()


engine = Engine(tools=[price, order], limits=Limits(timeout=2.0), policy=policy)
basket = [{"sku": "KB-01", "quantity": 1}, {"sku": "MS-02", "quantity": 2}]
TOTAL = "(sum (pmap #(* (:quantity %) (tool/price {:sku (:sku %)})) data/basket))"


async def main() -> None:
    outcome = await engine.run_async(TOTAL, data={"basket": basket})
    print(outcome.value, "after", len(outcome.ledger), "calls")

    mistaken = await engine.run_async("(sum (map :quantitty data/basket))", data={"basket": basket})
    print(mistaken.ok, mistaken.report())  # a value, and a warning: the key is misspelt
    failed = await engine.run_async("(let [total nil] (+ total 1))")
    print(failed.ok, failed.report())

    run = await engine.start_async(f"(tool/order {{:total {TOTAL}}})", data={"basket": basket})
    while isinstance(run, Suspended):
        call = run.calls[0]
        print(call.question)
        run = await run.approve_async(call)
    print(run.value)


if __name__ == "__main__":
    asyncio.run(main())
