/* dav_xml.c - the XML of WebDAV requests. The nodes and their texts are in blocks that are freed together. */
#include "http/dav/dav_xml.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#define XML_SEPARATOR  '\x1F' /* between namespace and name: it can be in neither */
#define XML_BLOCK_SIZE 16384

typedef struct XmlBlock
{
	struct XmlBlock *next;
	size_t used;
	size_t size;
	char bytes[];
} XmlBlock;

struct XmlTree
{
	XmlBlock *blocks;
	XmlNode *root;
	XmlNode *open; /* the innermost element that has not ended */
	XML_Parser parser;
	int depth;
	int elements;
	XmlError error;
};

static void
xml_fail(XmlTree *tree, XmlError error)
{
	if (tree->error == XML_OK)
		tree->error = error;
	(void) XML_StopParser(tree->parser, XML_FALSE);
}

/* Zeroed memory, aligned for pointers. NULL: there is none, and the parser stops. */
static void *
xml_alloc(XmlTree *tree, size_t size)
{
	XmlBlock *block = tree->blocks;
	void *result;

	size = (size + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
	if (block == NULL || block->size - block->used < size)
	{
		size_t room = size > XML_BLOCK_SIZE ? size : XML_BLOCK_SIZE;

		block = calloc(1, sizeof(XmlBlock) + room);
		if (block == NULL)
		{
			xml_fail(tree, XML_NO_MEMORY);
			return NULL;
		}
		block->size = room;
		block->next = tree->blocks;
		tree->blocks = block;
	}
	result = block->bytes + block->used;
	block->used += size;
	return result;
}

static char *
xml_copy(XmlTree *tree, const char *bytes, size_t len)
{
	char *copy = xml_alloc(tree, len + 1);

	if (copy != NULL)
		memcpy(copy, bytes, len);
	return copy;
}

/* ---- what expat reports ---- */

static bool
xml_set_name(XmlTree *tree, XmlNode *node, const char *name)
{
	const char *separator = strchr(name, XML_SEPARATOR);

	node->space = separator != NULL ? xml_copy(tree, name, (size_t) (separator - name)) : "";
	name = separator != NULL ? separator + 1 : name;
	node->name = xml_copy(tree, name, strlen(name));
	node->text = "";
	return node->space != NULL && node->name != NULL;
}

static bool
xml_add_attribute(XmlTree *tree, XmlNode *node, const char *name, const char *value)
{
	XmlAttribute *attribute = xml_alloc(tree, sizeof(XmlAttribute));

	if (attribute == NULL)
		return false;
	attribute->name = xml_copy(tree, name, strlen(name));
	attribute->value = xml_copy(tree, value, strlen(value));
	attribute->next = node->attributes;
	node->attributes = attribute;
	return attribute->name != NULL && attribute->value != NULL;
}

static void XMLCALL
xml_start(void *arg, const char *name, const char **attributes)
{
	XmlTree *tree = arg;
	XmlNode *node;

	if (tree->error != XML_OK)
		return;
	if (++tree->depth > XML_MAX_DEPTH || ++tree->elements > XML_MAX_ELEMENTS)
	{
		xml_fail(tree, XML_FORBIDDEN);
		return;
	}
	node = xml_alloc(tree, sizeof(XmlNode));
	if (node == NULL || !xml_set_name(tree, node, name))
		return;
	for (int i = 0; attributes[i] != NULL; i += 2)
	{
		if (!xml_add_attribute(tree, node, attributes[i], attributes[i + 1]))
			return;
	}
	node->parent = tree->open;
	if (tree->open == NULL)
		tree->root = node;
	else if (tree->open->last == NULL)
		tree->open->first = tree->open->last = node;
	else
		tree->open->last = tree->open->last->next = node;
	tree->open = node;
}

static void XMLCALL
xml_end(void *arg, const char *name)
{
	XmlTree *tree = arg;

	if (tree->error != XML_OK)
		return;
	tree->depth--;
	tree->open = tree->open->parent;
}

/* expat reports a text in pieces. The room for it doubles. */
static void XMLCALL
xml_text(void *arg, const char *bytes, int len)
{
	XmlTree *tree = arg;
	XmlNode *node = tree->open;
	size_t have, need, room = 32;
	char *text;

	if (tree->error != XML_OK || node == NULL)
		return;
	have = node->text_len;
	need = have + (size_t) len + 1;
	while (room < have + 1)
		room *= 2;
	if (have == 0 || need > room)
	{
		while (room < need)
			room *= 2;
		text = xml_alloc(tree, room);
		if (text == NULL)
			return;
		memcpy(text, node->text, have);
		node->text = text;
	}
	memcpy(node->text + have, bytes, (size_t) len);
	node->text_len = have + (size_t) len;
}

static void XMLCALL
xml_doctype(void *arg, const char *name, const char *system_id, const char *public_id, int has_subset)
{
	xml_fail(arg, XML_FORBIDDEN);
}

/* ---- documents ---- */

XmlError
xml_read(const char *bytes, size_t len, XmlTree **result)
{
	XmlTree *tree = calloc(1, sizeof(XmlTree));
	enum XML_Status status;

	*result = tree;
	if (tree == NULL)
		return XML_NO_MEMORY;
	tree->parser = XML_ParserCreateNS(NULL, XML_SEPARATOR);
	if (tree->parser == NULL)
		return XML_NO_MEMORY;
	XML_SetUserData(tree->parser, tree);
	XML_SetElementHandler(tree->parser, xml_start, xml_end);
	XML_SetCharacterDataHandler(tree->parser, xml_text);
	XML_SetStartDoctypeDeclHandler(tree->parser, xml_doctype);
	status = len < (size_t) 1 << 30 ? XML_Parse(tree->parser, bytes, (int) len, 1) : XML_STATUS_ERROR;
	if (tree->error == XML_OK && status != XML_STATUS_OK)
		tree->error = XML_GetErrorCode(tree->parser) == XML_ERROR_NO_MEMORY ? XML_NO_MEMORY : XML_MALFORMED;
	XML_ParserFree(tree->parser);
	tree->parser = NULL;
	return tree->error;
}

void
xml_free(XmlTree *tree)
{
	if (tree == NULL)
		return;
	while (tree->blocks != NULL)
	{
		XmlBlock *block = tree->blocks;

		tree->blocks = block->next;
		free(block);
	}
	free(tree);
}

const XmlNode *
xml_root(const XmlTree *tree)
{
	return tree != NULL && tree->error == XML_OK ? tree->root : NULL;
}

bool
xml_is(const XmlNode *node, const char *space, const char *name)
{
	return strcmp(node->name, name) == 0 && strcmp(node->space, space) == 0;
}

const XmlNode *
xml_child(const XmlNode *node, const char *space, const char *name)
{
	const XmlNode *child = node != NULL ? node->first : NULL;

	while (child != NULL && !xml_is(child, space, name))
		child = child->next;
	return child;
}

const char *
xml_attribute(const XmlNode *node, const char *name)
{
	for (const XmlAttribute *attribute = node->attributes; attribute != NULL; attribute = attribute->next)
	{
		if (strcmp(attribute->name, name) == 0)
			return attribute->value;
	}
	return NULL;
}
