#!/usr/bin/python3
"""random_rules.py COUNT SEED: random recurrence rules and their first times by python3-dateutil, a line of JSON each:
{"rule", "starts", "times"}. The times are those of the rule and its start."""
import datetime, json, random, sys
from dateutil.rrule import rrulestr

DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]

def some(r, values, most):
	return sorted(r.sample(values, r.randint(1, min(most, len(values)))), key=lambda v: str(v))

def signed(r, high):
	return lambda: r.choice([1, 1, 1, -1]) * r.randint(1, high)

def part(r, name, make, most):
	return name + "=" + ",".join(str(v) for v in sorted({make() for _ in range(r.randint(1, most))}))

def rule(r):
	freq = r.choice(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
	parts = ["FREQ=" + freq]
	if r.random() < .5:
		parts.append("INTERVAL=%d" % r.choice([1, 2, 2, 3, 4, 5, 7, 12]))
	if r.random() < .3:
		parts.append("WKST=" + r.choice(DAYS))
	week = False
	if freq == "YEARLY" and r.random() < .2:
		parts.append(part(r, "BYWEEKNO", lambda: r.randint(2, 51), 3))
		parts.append("BYDAY=" + ",".join(some(r, DAYS, 3)))
		week = True
	elif freq == "YEARLY" and r.random() < .2:
		parts.append(part(r, "BYYEARDAY", signed(r, 366), 4))
	else:
		if r.random() < .4:
			parts.append(part(r, "BYMONTH", lambda: r.randint(1, 12), 3))
		if freq in ("DAILY", "MONTHLY", "YEARLY") and r.random() < .35:
			parts.append(part(r, "BYMONTHDAY", signed(r, 31), 3))
		if r.random() < .5:
			if freq in ("MONTHLY", "YEARLY") and r.random() < .5 and not any("BYMONTHDAY" in p for p in parts):
				parts.append("BYDAY=" + ",".join("%d%s" % (signed(r, 5 if freq == "MONTHLY" or any("BYMONTH=" in p for p in parts) else 53)(), d) for d in some(r, DAYS, 3)))
			else:
				parts.append("BYDAY=" + ",".join(some(r, DAYS, 4)))
	if freq in ("MONTHLY", "YEARLY") and any(p.startswith("BY") for p in parts) and r.random() < .3:
		parts.append(part(r, "BYSETPOS", signed(r, 4), 2))
	return parts

def main():
	r = random.Random(int(sys.argv[2]))
	for _ in range(int(sys.argv[1])):
		start = datetime.datetime(r.randint(1990, 2037), r.randint(1, 12), r.randint(1, 28), r.randint(0, 23), r.randint(0, 59))
		parts = rule(r)
		if r.random() < .4:
			parts.append("COUNT=%d" % r.randint(1, 40))
		elif r.random() < .4:
			parts.append("UNTIL=" + (start + datetime.timedelta(days=r.randint(0, 3000))).strftime("%Y%m%dT%H%M%S"))
		text = ";".join(parts)
		end = start + datetime.timedelta(days=365 * 12)
		times = []
		for t in rrulestr(text, dtstart=start):
			if t > end or len(times) == 30:
				break
			times.append(t)
		if start not in times:
			times.insert(0, start)
		print(json.dumps({"rule": text, "starts": start.isoformat(), "times": [t.isoformat() for t in times[:30]]}))

main()
