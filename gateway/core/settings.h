/*
 * settings.h - the table of the gateway's settings. config.c reads their values.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "core/config.h"

#define SETTINGS_ENV_PREFIX "PG_SHEET_"
#define SETTINGS_MOST		128 /* upper limit of settings_count */

typedef enum SettingType
{
	SETTING_TEXT,
	SETTING_CHOICE, /* one of the words in `legal` */
	SETTING_INT,	/* a plain number is in `unit`; of bytes and times, others may be given */
	SETTING_BOOL,
} SettingType;

typedef struct Setting
{
	const char *group;
	const char *name;
	SettingType type;
	size_t offset;		  /* in Config */
	bool reloaded;		  /* SIGHUP changes it */
	const char *fallback; /* the default, as text */
	long long min, max;
	const char *unit;
	const char *legal; /* SETTING_CHOICE: the words; SETTING_TEXT: its form, for --help */
	const char *help;
} Setting;

#define FIELD(field) offsetof(Config, field)

extern const Setting settings[];
extern const size_t settings_count;

/* Returns NULL if there is no setting of this name. */
extern const Setting *setting_find(const char *name, size_t len);
/* Writes the name of the environment variable: PG_SHEET_LISTEN_PORT for "listen-port". */
extern void setting_env_name(const Setting *setting, char *to, size_t size);
/* The size of its field in Config. */
extern size_t setting_size(const Setting *setting);
extern bool setting_is_text(const Setting *setting);
/* Its field in Config, of a text or choice. */
extern char **setting_text(const Setting *setting, Config *config);
/* Accepts true, on, yes, 1, and false, off, no, 0. */
extern bool setting_parse_bool(const char *value, bool *to);
/* Checks a value's type and range and stores it. Returns NULL, or what is wrong with the value. */
extern const char *setting_store(const Setting *setting, Config *config, const char *value);
/* Describes the legal values, for --help and errors. Returns `to` or a constant. */
extern const char *setting_legal(const Setting *setting, char *to, size_t size);
/* Prints --help. */
extern void settings_print(void);

#endif
