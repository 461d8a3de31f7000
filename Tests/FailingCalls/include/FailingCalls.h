#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

/*
 * A library for LD_PRELOAD that makes chosen system calls of a program fail.
 *
 * It counts the calls on files below one directory, logs each of them, and makes some of them fail
 * like a disk: the Nth, or all from the Nth on. Calls on other files, sockets and devices pass at
 * the cost of one array look-up. It works with any dynamically linked program.
 *
 * Environment of the program:
 *   FAILING_CALLS_DIRECTORY  an absolute path without symbolic links: the directory whose files are
 *                            counted. The path at the open determines whether a file is below it.
 *   FAILING_CALLS_PLAN       the file of the plan. Each counted call reads it, so it may change
 *                            while the program runs (replace it by rename(2)).
 *   FAILING_CALLS_LOG        a file to append one line per counted call to.
 *
 * The plan is one line; with an empty or missing file, all calls pass:
 *   CALLS NAMES FIRST COUNT ERRNO EFFECT
 *     CALLS   names separated by commas, without blanks, out of: openat (open and openat),
 *             mkdirat, pread, pwrite, write, ftruncate, fsync, fdatasync, renameat, unlinkat,
 *             fchmod, futimens, flock, fstat, splice; or "all".
 *     NAMES   a prefix of the last component of the file's path, or "*" for any.
 *     FIRST   the number of the first of these calls that fails, from 1, under this plan.
 *     COUNT   how many fail from there on; 0 for all.
 *     ERRNO   an errno; for "slow", a number of milliseconds.
 *     EFFECT  fail: the call does nothing. short: a pwrite or write of more than one byte transfers
 *             half and succeeds; other calls fail. torn: a pwrite or write transfers half and then
 *             fails; others are executed and then reported as failed. held: a call that transfers
 *             no bytes waits until the plan holds no calls, and is then executed; others fail.
 *             slow: a call that transfers no bytes waits for ERRNO milliseconds and is then
 *             executed; others fail.
 *
 * A line of the log: NUMBER CALL RESULT OFFSET BYTES PATH
 *   NUMBER  the number of the call in the plan, from 1; 0 if the plan does not name it.
 *   RESULT  "ok", "short" for a short transfer, "held" (the same call has another line at its end),
 *           or the errno of an injected or genuine failure.
 *   OFFSET, BYTES  of the requested transfer; otherwise 0.
 *   PATH    the path at the open, relative to the directory, "." for itself. A later rename does
 *           not change it. It extends to the end of the line.
 */

#endif
