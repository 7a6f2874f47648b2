/* command.h - what operators ask on the command line; see command.c. */
#ifndef COMMAND_H
#define COMMAND_H

/* Runs `pg_sheet_gateway COMMAND ...`, and returns the exit status. */
extern int command_run(int argc, char **argv);

#endif
