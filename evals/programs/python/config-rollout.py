wanted = data["wanted"]
names = sorted(wanted)

changed = {}
locked = []
rolled_back = []


def same(a, b):
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def try_set(service, name, value):
    try:
        return set_config(service=service, name=name, value=value)["ok"]
    except RuntimeError:
        return False


for service in data["services"]:
    config = dict(get_config(service=service))
    if config.get("locked") is True:
        locked.append(service)
        continue
    done = []
    failed = False
    for name in names:
        if name in config and same(config[name], wanted[name]):
            continue
        if not try_set(service, name, wanted[name]):
            failed = True
            break
        done.append(name)
    if failed:
        for name in reversed(done):
            if name in config:
                set_config(service=service, name=name, value=config[name])
            else:
                unset_config(service=service, name=name)
        rolled_back.append(service)
    elif done:
        changed[service] = done

result = {"changed": changed, "locked": locked, "rolled_back": rolled_back}
