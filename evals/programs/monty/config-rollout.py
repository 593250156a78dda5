wanted = data["wanted"]
names = sorted(wanted.keys())

changed = {}
locked = []
rolled_back = []

for service in data["services"]:
    config = dict(get_config(service=service))
    if config.get("locked") is True:
        locked.append(service)
        continue
    done = []
    failed = False
    for name in names:
        value = wanted[name]
        if name in config and config[name] == value:
            continue
        try:
            set_config(service=service, name=name, value=value)
        except RuntimeError:
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
