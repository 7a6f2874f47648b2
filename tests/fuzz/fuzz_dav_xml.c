/*
 * fuzz_dav_xml.c - a document that is read, written again and read again is the same tree. What expat alone refuses is
 * refused.
 */
#include "http/dav/dav_xml.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

static void
put_text(FILE *to, const char *text)
{
	for (; *text != '\0'; text++)
	{
		if (strchr("&<>\"\r\n\t", *text) != NULL)
			fprintf(to, "&#%d;", *text);
		else
			fputc(*text, to);
	}
}

static void
put_node(FILE *to, const XmlNode *node)
{
	const char *prefix = node->space[0] != '\0' ? "n:" : "";

	fprintf(to, "<%s%s", prefix, node->name);
	if (node->space[0] != '\0')
	{
		fprintf(to, " xmlns:n=\"");
		put_text(to, node->space);
		fprintf(to, "\"");
	}
	fprintf(to, ">");
	put_text(to, node->text);
	for (const XmlNode *child = node->first; child != NULL; child = child->next)
	{
		FUZZ_CHECK(child->parent == node);
		put_node(to, child);
	}
	fprintf(to, "</%s%s>", prefix, node->name);
}

static void
check_same(const XmlNode *a, const XmlNode *b)
{
	FUZZ_CHECK(strcmp(a->name, b->name) == 0 && strcmp(a->space, b->space) == 0);
	FUZZ_CHECK(a->text_len == b->text_len && strcmp(a->text, b->text) == 0 && strlen(a->text) == a->text_len);
	a = a->first;
	b = b->first;
	for (; a != NULL && b != NULL; a = a->next, b = b->next)
		check_same(a, b);
	FUZZ_CHECK(a == NULL && b == NULL);
}

static bool
expat_reads(const char *bytes, size_t size)
{
	XML_Parser parser = XML_ParserCreateNS(NULL, '|');
	bool good = XML_Parse(parser, bytes, (int) size, 1) == XML_STATUS_OK;

	XML_ParserFree(parser);
	return good;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size), *text = NULL;
	size_t len = 0;
	XmlTree *tree, *again;
	XmlError error = xml_read(exact, size, &tree);

	FUZZ_CHECK((error == XML_OK) == (xml_root(tree) != NULL));
	FUZZ_CHECK(error != XML_OK || expat_reads(exact, size));
	FUZZ_CHECK(error != XML_MALFORMED || !expat_reads(exact, size));
	if (error == XML_OK)
	{
		FILE *to = open_memstream(&text, &len);

		put_node(to, xml_root(tree));
		fclose(to);
		FUZZ_CHECK(xml_read(text, len, &again) == XML_OK);
		check_same(xml_root(tree), xml_root(again));
		xml_free(again);
		free(text);
	}
	xml_free(tree);
	free(exact);
	return 0;
}
