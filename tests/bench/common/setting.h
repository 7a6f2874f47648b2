/* setting.h - settings from the environment; one that is out of its range ends the program. */
#ifndef SETTING_H
#define SETTING_H

extern double setting(const char *name, double otherwise, double low, double high);

#endif
