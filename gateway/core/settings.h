/*
 * settings.h - the table of the gateway's settings, and what follows from it alone. Where their values come from is
 * config.c's.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "core/config.h"

#define SETTINGS_ENV_PREFIX "PG_SHEET_"
#define SETTINGS_MOST		128 /* there are no more */

typedef enum SettingType
{
	SETTING_TEXT,
	SETTING_CHOICE, /* one of the words in `legal` */
	SETTING_INT,
	SETTING_BYTES, /* like SETTING_INT, and kB, MB, GB may follow */
	SETTING_BOOL,
} SettingType;

typedef struct Setting
{
	const char *group;
	const char *name;
	SettingType type;
	size_t offset;		  /* in Config */
	const char *fallback; /* the default, as text */
	long long min, max;
	const char *unit;
	const char *legal; /* SETTING_CHOICE: words between blanks; SETTING_TEXT: how it looks, for people */
	const char *help;
} Setting;

#define FIELD(field) offsetof(Config, field)

extern const Setting settings[];
extern const size_t settings_count;

/* NULL: there is none of this name. */
extern const Setting *setting_find(const char *name, size_t len);
/* "listen-port" is PG_SHEET_LISTEN_PORT in the environment. */
extern void setting_env_name(const Setting *setting, char *to, size_t size);
/* Of its value in Config. */
extern size_t setting_size(const Setting *setting);
extern bool setting_is_text(const Setting *setting);
/* Does SIGHUP change it? */
extern bool setting_is_reloadable(const Setting *setting);
/* Where Config has its text. */
extern char **setting_text(const Setting *setting, Config *config);
/* The legal values in words, as --help and errors show them; in `to`, or a text of the table's. */
extern const char *setting_legal(const Setting *setting, char *to, size_t size);
/* All of them, for --help. */
extern void settings_print(void);

#endif
