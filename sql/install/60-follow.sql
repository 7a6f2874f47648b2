-- Following: how gateways hear of what others have changed.

CREATE FUNCTION sheet.follow(IN origin bigint, INOUT "cursor" bigint, IN timeout_ms integer,
	OUT lost boolean, OUT sheet_ids bigint[], OUT seqs bigint[])
	RETURNS record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'sheet_follow';
COMMENT ON FUNCTION sheet.follow(bigint, bigint, integer) IS
	'Waits up to timeout_ms (0 to 600000) for commits after cursor that were made by another origin in this database. '
	'cursor NULL returns the present one at once. seqs[i] is the last seq of sheet_ids[i], or -1 when the sheet''s own row or its members changed; '
	'sheet_ids[i] is -uid and seqs[i] -1 when the name or the tokens of that account changed. '
	'lost: events have been missed (ask every sheet for its tail). For gateways.';
REVOKE ALL ON FUNCTION sheet.follow(bigint, bigint, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sheet.follow(bigint, bigint, integer) TO sheet_gateway;
