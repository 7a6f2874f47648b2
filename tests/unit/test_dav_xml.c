/*
 * test_dav_xml.c - XML of WebDAV requests: the tree of a document, what is refused, and that memory which is missing
 * is an error and leaves none behind.
 */
#include "http/dav/dav_xml.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static int allocations_left = -1; /* before one fails; -1: none does */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);

static bool
fails(void)
{
	return allocations_left >= 0 && allocations_left-- == 0;
}

void *
__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

static const char document[] =
	"<?xml version=\"1.0\"?><d:report xmlns:d='DAV:' xmlns='urn:x'><!-- --><d:prop>one &amp; "
	"<![CDATA[<two>]]><d:a/> three</d:prop><time start='1' end='2'/><d:prop/></d:report>";

static void
test_tree(void)
{
	XmlTree *tree;
	const XmlNode *root, *prop, *time;

	TAP_OK(xml_read(document, strlen(document), &tree) == XML_OK, "a document is read");
	root = xml_root(tree);
	prop = xml_child(root, XML_DAV, "prop");
	time = xml_child(root, "urn:x", "time");
	TAP_OK(xml_is(root, XML_DAV, "report") && root->parent == NULL && prop->parent == root, "names have namespaces");
	TAP_OK(strcmp(prop->text, "one & <two> three") == 0, "the text of an element is in one piece");
	TAP_OK(xml_is(prop->first, XML_DAV, "a") && prop->first->next == NULL, "elements have children");
	TAP_OK(strcmp(xml_attribute(time, "end"), "2") == 0 && xml_attribute(time, "x") == NULL, "attributes are found");
	TAP_OK(xml_child(root, "", "time") == NULL && xml_child(NULL, XML_DAV, "prop") == NULL, "others are not");
	xml_free(tree);
}

static XmlError
read_text(const char *text, size_t len)
{
	XmlTree *tree;
	XmlError error = xml_read(text, len, &tree);

	if (error != XML_OK && xml_root(tree) != NULL)
		error = XML_OK;
	xml_free(tree);
	return error;
}

/* `count` elements, each within the one before it or beside it. */
static XmlError
read_many(int count, bool nested)
{
	size_t size = (size_t) count * 10 + 100, len = 0;
	char *text = malloc(size);
	XmlError error;

	len += (size_t) sprintf(text, "<r>");
	for (int i = 0; i < count; i++)
		len += (size_t) sprintf(text + len, nested ? "<a>" : "<a/>");
	for (int i = 0; nested && i < count; i++)
		len += (size_t) sprintf(text + len, "</a>");
	len += (size_t) sprintf(text + len, "</r>");
	error = read_text(text, len);
	free(text);
	return error;
}

static void
test_refused(void)
{
	static const char *const malformed[] = {
		"",		  "<",			"text",		   "<a>",		  "<a></b>",		 "<a/><b/>",
		"<b:a/>", "<a>&b;</a>", "<a>\x01</a>", "<a>\xff</a>", "<a b='1' b='2'/>"};
	static const char *const forbidden[] = {"<!DOCTYPE a><a/>", "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
											"<!DOCTYPE a [<!ENTITY b 'c'><!ENTITY d '&b;&b;'>]><a>&d;</a>"};

	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		TAP_OK(read_text(malformed[i], strlen(malformed[i])) == XML_MALFORMED, "malformed: %zu", i);
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		TAP_OK(read_text(forbidden[i], strlen(forbidden[i])) == XML_FORBIDDEN, "a document type: %zu", i);
	TAP_OK(read_many(XML_MAX_DEPTH - 1, true) == XML_OK, "elements in each other up to the limit");
	TAP_OK(read_many(XML_MAX_DEPTH, true) == XML_FORBIDDEN, "one more is too deep");
	TAP_OK(read_many(1000000, true) == XML_FORBIDDEN, "a million, too");
	TAP_OK(read_many(XML_MAX_ELEMENTS - 1, false) == XML_OK, "elements up to the limit");
	TAP_OK(read_many(XML_MAX_ELEMENTS, false) == XML_FORBIDDEN, "one more is too many");
}

static void
test_memory(void)
{
	bool good = true;
	XmlError error = XML_NO_MEMORY;
	int count = 0;

	while (error != XML_OK && count < 1000)
	{
		allocations_left = count++;
		error = read_text(document, strlen(document));
		good &= error == XML_OK || error == XML_NO_MEMORY;
	}
	allocations_left = -1;
	TAP_OK(good && error == XML_OK && count > 2, "each allocation may fail (%d)", count);
}

int
main(void)
{
	test_tree();
	test_refused();
	test_memory();
	return tap_done();
}
