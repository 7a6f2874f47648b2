/*
 * dav_xml.h - the XML of WebDAV requests, read by expat into a tree.
 *
 * A document type is refused, and with it every entity of its own. Depth and number of elements are bounded. Pure C.
 */
#ifndef DAV_XML_H
#define DAV_XML_H

#include <stdbool.h>
#include <stddef.h>

#define XML_MAX_DEPTH	 24
#define XML_MAX_ELEMENTS 50000

#define XML_DAV	   "DAV:"
#define XML_CALDAV "urn:ietf:params:xml:ns:caldav"
#define XML_CS	   "http://calendarserver.org/ns/"
#define XML_APPLE  "http://apple.com/ns/ical/"

typedef struct XmlAttribute
{
	struct XmlAttribute *next;
	const char *name;
	const char *value;
} XmlAttribute;

typedef struct XmlNode
{
	struct XmlNode *next;	/* its sibling */
	struct XmlNode *first;	/* its first child */
	struct XmlNode *last;	/* its last child */
	struct XmlNode *parent; /* NULL: the root */
	const char *space;		/* its namespace; "" if it has none */
	const char *name;
	char *text; /* of the element, without its children's; "" if it has none */
	size_t text_len;
	XmlAttribute *attributes;
} XmlNode;

typedef struct XmlTree XmlTree;

typedef enum XmlError
{
	XML_OK,
	XML_MALFORMED,
	XML_FORBIDDEN, /* a document type, too deep or too many elements */
	XML_NO_MEMORY
} XmlError;

/* Reads a document. *tree is freed by xml_free(), also after an error. */
extern XmlError xml_read(const char *bytes, size_t len, XmlTree **tree);
extern void xml_free(XmlTree *tree);
/* NULL: the tree is NULL, or was not read. */
extern const XmlNode *xml_root(const XmlTree *tree);

extern bool xml_is(const XmlNode *node, const char *space, const char *name);
/* The first child with the name, or NULL; node may be NULL. */
extern const XmlNode *xml_child(const XmlNode *node, const char *space, const char *name);
/* The value of an attribute without a namespace, or NULL. */
extern const char *xml_attribute(const XmlNode *node, const char *name);

#endif
