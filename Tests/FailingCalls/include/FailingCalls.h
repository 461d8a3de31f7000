#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

/*
 * A library for LD_PRELOAD that makes chosen system calls of a program fail.
 *
 * It counts the calls that work on files below one directory, logs each of them, and lets some of
 * them fail as a disk would: the Nth, or all from the Nth on. Calls on other files, sockets and
 * devices pass at the cost of one array lookup. It works on any dynamically linked program.
 *
 * Environment of the program:
 *   FAILING_CALLS_DIRECTORY  an absolute path without symbolic links: the directory, and what is
 *                            below it. Which files that are is decided when they are opened.
 *   FAILING_CALLS_PLAN       a file that says what fails, read again at each counted call, so that
 *                            it may change while the program runs (replace it by rename(2)).
 *   FAILING_CALLS_LOG        a file to append one line per counted call to.
 *
 * The plan is one line; an empty or missing file lets everything pass:
 *   CALLS NAMES FIRST COUNT ERRNO EFFECT
 *     CALLS   names separated by commas, without blanks, out of: openat (open and openat),
 *             mkdirat, pread, pwrite, write, ftruncate, fsync, fdatasync, renameat, unlinkat,
 *             fchmod, futimens, flock, fstat, splice; or "all".
 *     NAMES   a prefix of the last component of the file's path, or "*" for any.
 *     FIRST   the number of the first of these calls that fails, from 1, since the plan came.
 *     COUNT   how many fail from there on; 0 for all.
 *     ERRNO   a number; of milliseconds for "slow".
 *     EFFECT  fail: nothing is done. short: a pwrite or write of more than one byte transfers half
 *             and succeeds; other calls fail. torn: a pwrite or write transfers half and then
 *             fails, and others are done and then reported as failed. held: a call that moves no
 *             bytes waits until the plan holds nothing any more, and then is done; others fail.
 *             slow: a call that moves no bytes waits so long and then is done; others fail.
 *
 * A line of the log: NUMBER CALL RESULT OFFSET BYTES PATH
 *   NUMBER  which call of the plan it was, from 1; 0 where the plan does not name it.
 *   RESULT  "ok", "held" (followed by another line for the same call in the end), or the errno of the failure, injected or genuine; "short" for a short transfer.
 *   OFFSET, BYTES  of a transfer, as asked for; else 0.
 *   PATH    relative to the directory, "." for itself, with what the descriptor was opened as: a
 *           later rename does not change it. To the end of the line.
 */

#endif
