-- Helpers of the tests journal_*: edits and batches by hand, and back to rows. They do in SQL what common/edit_codec.c does.
-- Made once in the test database; the tests run in any order.
SELECT to_regproc('j_cells') IS NOT NULL AS j_there \gset
\if :j_there
\else
CREATE FUNCTION j_varint(n bigint) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE b bytea := ''; x bigint := n;
BEGIN
	LOOP
		IF x < 128 THEN RETURN b || set_byte('\x00', 0, x::int); END IF;
		b := b || set_byte('\x00', 0, (x % 128)::int | 128);
		x := x / 128;
	END LOOP;
END $$;
CREATE FUNCTION j_edit(kind int, uid bigint, "row" int, col int, content text, style text DEFAULT NULL) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT set_byte('\x00', 0, kind | CASE WHEN style IS NULL THEN 0 ELSE 16 END) || j_varint(uid) || j_varint("row") || j_varint(col)
		|| j_varint(octet_length(content)) || convert_to(content, 'UTF8')
		|| CASE WHEN style IS NULL THEN '' ELSE j_varint(octet_length(style)) || convert_to(style, 'UTF8') END
$$;
CREATE FUNCTION j_set("row" int, col int, content text, style text DEFAULT NULL) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT j_edit(1, 7, "row", col, content, style)
$$;
CREATE FUNCTION j_batch(VARIADIC edits bytea[]) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT '\x01'::bytea || '\x0000' || j_varint(cardinality(edits)) || string_agg(e, '' ORDER BY o) FROM unnest(edits) WITH ORDINALITY u(e, o)
$$;
-- All edits of a stream.
CREATE FUNCTION j_decode(b bytea) RETURNS TABLE (seq bigint, kind int, uid bigint, "row" bigint, col bigint, content text, style text, old text) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE p int := 0; len int := octet_length(b); n bigint; v bigint; head int; count bigint; sh int; bt int; i int; nums bigint[]; pu bigint; pr bigint;
BEGIN
	WHILE p < len LOOP
		p := p + 1; nums := '{}';
		FOR i IN 1..3 LOOP
			v := 0; sh := 0;
			LOOP bt := get_byte(b, p); p := p + 1; v := v | ((bt & 127)::bigint << sh); sh := sh + 7; EXIT WHEN bt < 128; END LOOP;
			nums := nums || v;
		END LOOP;
		seq := nums[1] - 1; count := nums[3]; pu := 0; pr := 0;
		WHILE count > 0 LOOP
			count := count - 1; seq := seq + 1; head := get_byte(b, p); p := p + 1; kind := head & 15;
			IF head & 64 = 0 THEN v := 0; sh := 0;
				LOOP bt := get_byte(b, p); p := p + 1; v := v | ((bt & 127)::bigint << sh); sh := sh + 7; EXIT WHEN bt < 128; END LOOP; pu := v; END IF;
			IF head & 128 = 0 THEN v := 0; sh := 0;
				LOOP bt := get_byte(b, p); p := p + 1; v := v | ((bt & 127)::bigint << sh); sh := sh + 7; EXIT WHEN bt < 128; END LOOP; pr := v; END IF;
			v := 0; sh := 0;
			LOOP bt := get_byte(b, p); p := p + 1; v := v | ((bt & 127)::bigint << sh); sh := sh + 7; EXIT WHEN bt < 128; END LOOP; col := v;
			uid := pu; "row" := pr; style := NULL; old := NULL;
			v := 0; sh := 0;
			LOOP bt := get_byte(b, p); p := p + 1; v := v | ((bt & 127)::bigint << sh); sh := sh + 7; EXIT WHEN bt < 128; END LOOP;
			content := convert_from(substring(b FROM p + 1 FOR v::int), 'UTF8'); p := p + v;
			IF head & 16 <> 0 THEN v := 0; sh := 0;
				LOOP bt := get_byte(b, p); p := p + 1; v := v | ((bt & 127)::bigint << sh); sh := sh + 7; EXIT WHEN bt < 128; END LOOP;
				style := convert_from(substring(b FROM p + 1 FOR v::int), 'UTF8'); p := p + v; END IF;
			IF head & 32 <> 0 THEN v := 0; sh := 0;
				LOOP bt := get_byte(b, p); p := p + 1; v := v | ((bt & 127)::bigint << sh); sh := sh + 7; EXIT WHEN bt < 128; END LOOP;
				old := convert_from(substring(b FROM p + 1 FOR v::int), 'UTF8'); p := p + v; END IF;
			RETURN NEXT;
		END LOOP;
	END LOOP;
END $$;
CREATE FUNCTION j_cells(id bigint) RETURNS TABLE ("row" bigint, col bigint, content text, style text) LANGUAGE sql VOLATILE AS $$
	SELECT d."row", d.col, d.content, d.style FROM sheet.read_cells(id) r, j_decode(r.cells) d
$$;
-- What a call raises: its SQLSTATE, and the message without numbers of sheets.
CREATE FUNCTION j_error(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE call;
	RETURN 'none';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ': ' || regexp_replace(sqlerrm, 'sheet \d+', 'sheet N');
END $$;
\endif
