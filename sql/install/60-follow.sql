-- Following: how gateways learn of changes made elsewhere.

CREATE FUNCTION sheet.follow(IN origin bigint, INOUT "cursor" bigint, IN timeout_ms integer,
	OUT lost boolean, OUT sheet_ids bigint[], OUT seqs bigint[])
	RETURNS record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'sheet_follow';
COMMENT ON FUNCTION sheet.follow(bigint, bigint, integer) IS
	'Waits up to timeout_ms (0 to 600000) for commits after cursor by another origin in this '
	'database. cursor null: returns the present one at once. seqs[i] is the last seq of '
	'sheet_ids[i], or -1 if the sheet''s row or its members changed. sheet_ids[i] is -uid, and '
	'seqs[i] -1, if the name or the tokens of that account changed. lost: events were missed, so '
	'ask every sheet for its tail. For gateways.';
REVOKE ALL ON FUNCTION sheet.follow(bigint, bigint, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sheet.follow(bigint, bigint, integer) TO sheet_gateway;
