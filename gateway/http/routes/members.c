/*
 * members.c - the members that JSON bodies of protocol v2 may have. Any other one is refused: of an optional member
 * that is misspelt, nothing else would tell. docs/openapi.yaml has the same names.
 */
#include "http/routes/routes.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MEMBERS_LINK		"role expires ref password label embed index"
#define MEMBERS_SHOWN_BYTES 64

typedef struct Members
{
	const char *path; /* of the table of routes */
	Method method;
	const char *names; /* besides token, which each body may have */
} Members;

/* Bodies of other routes of /v2/ have no members. */
static const Members members[] = {
	{"/v2/account/password", METHOD_POST, "oldPassword password"},
	{"/v2/ticket", METHOD_POST, "fid"},
	{"/v2/tokens", METHOD_POST, "label scopes days"},
	{"/v2/sheets", METHOD_POST, "name rows cols"},
	{"/v2/sheets/*/open", METHOD_POST, "link"},
	{"/v2/sheets/*/rename", METHOD_POST, "name"},
	{"/v2/sheets/*/label", METHOD_POST, "version label"},
	{"/v2/sheets/*", METHOD_PATCH, "name"},
	{"/v2/sheets/*/versions", METHOD_POST, "label"},
	{"/v2/sheets/*/rollback", METHOD_POST, "version"},
	{"/v2/sheets/*/members/*", METHOD_PUT, "role"},
	{"/v2/sheets/*/cells", METHOD_PUT, "values"},
	{"/v2/sheets/*/cells", METHOD_PATCH, "cells"},
	{"/v2/sheets/*/append", METHOD_POST, "values"},
	{"/v2/sheets/*/links", METHOD_POST, MEMBERS_LINK},
	{"/v2/sheets/*/links/*", METHOD_PATCH, MEMBERS_LINK " blocked"},
	{"/v2/sheets/*/webhooks", METHOD_POST, "url"},
	{"/v2/sheets/*/webhooks/*", METHOD_PATCH, "url active"},
	{"/v2/books", METHOD_POST, "name"},
	{"/v2/books/*", METHOD_PATCH, "name"},
	{"/v2/books/*/duplicate", METHOD_POST, "name"},
	{"/v2/books/*/members/*", METHOD_PUT, "role"},
	{"/v2/books/*/tabs", METHOD_POST, "name rows cols before sheet copy"},
	{"/v2/books/*/tabs/*", METHOD_PATCH, "before colour hidden"},
	{"/v2/calendars", METHOD_POST, "name zone"},
	{"/v2/calendars/*", METHOD_PATCH, "colour"},
	{"/v2/calendars/*/tasks", METHOD_POST, "cells"},
	{"/v2/calendars/*/tasks/*", METHOD_PATCH, "cells scope instance seen"},
	{"/v2/calendars/*/answers/*", METHOD_PUT, "answer instance"},
	{"/v2/link/cells", METHOD_PATCH, "cells rows cols"},
	{"/v2/link", METHOD_POST, "link name password"},
};

static const char *
members_of(const char *path, Method method)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
	{
		if (members[i].method == method && strcmp(members[i].path, path) == 0)
			return members[i].names;
	}
	return "";
}

/* Case is ignored, as in request_member(). */
static bool
members_have(const char *names, const char *name)
{
	size_t len = strlen(name), word;

	for (; *names != '\0'; names += word + (names[word] == ' '))
	{
		word = strcspn(names, " ");
		if (word == len && strncasecmp(names, name, len) == 0)
			return true;
	}
	return false;
}

bool
members_check(Request *request, const char *path, Method method)
{
	const char *names;
	const cJSON *item;
	char reason[256];

	if (strncmp(path, "/v2/", 4) != 0)
		return true;
	names = members_of(path, method);
	cJSON_ArrayForEach(item, request->json)
	{
		const char *name = item->string;

		if (strcasecmp(name, "token") == 0 || members_have(names, name))
			continue;
		snprintf(reason, sizeof(reason), "unknown member of the body: %s; it may have: %s%stoken",
				 strlen(name) <= MEMBERS_SHOWN_BYTES ? name : "one with a long name", names,
				 names[0] != '\0' ? " " : "");
		request_error(request, 400, reason);
		return false;
	}
	return true;
}
