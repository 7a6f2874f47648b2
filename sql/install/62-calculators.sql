-- Calculators: programs that compute formulas (docs/design/calc.md), and how they learn of each other.

-- What each of them tells every 5 seconds. Unlogged: if it is lost, sheets are computed twice for a while.
CREATE UNLOGGED TABLE sheet.calculator (
	name text PRIMARY KEY CHECK (length(name) <= 300),
	seen timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE sheet.calculator IS 'Programs that compute formulas, and when they were seen.';

CREATE FUNCTION sheet.report_calculator(name text, leaves boolean DEFAULT false) RETURNS SETOF text
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	DELETE FROM sheet.calculator c
		WHERE c.name = report_calculator.name AND leaves OR c.seen < now() - interval '1 hour';
	INSERT INTO sheet.calculator SELECT report_calculator.name, now() WHERE NOT leaves
		ON CONFLICT ON CONSTRAINT calculator_pkey DO UPDATE SET seen = excluded.seen;
	SELECT c.name FROM sheet.calculator c WHERE c.seen > now() - interval '15 s' ORDER BY c.name
$$;
COMMENT ON FUNCTION sheet.report_calculator(text, boolean) IS
	'Tells that a program computes formulas, or (leaves) that it ends, and returns the names of those that were seen in '
	'the last 15 seconds. They share the sheets. For programs that compute values.';
