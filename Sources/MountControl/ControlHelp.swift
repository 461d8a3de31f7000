/// The text that a program reads from `.control`.
package enum ControlHelp {
  package static let text = """
    Write commands to this file, one per line; every write is done as a whole or not at all.

    prefetch NAME...     fetch whole files in the background
    cancel NAME...       end that
    pause [NAME...]      fetch only what reads wait for; all files without names
    resume [NAME...]     end that
    evict NAME...        remove the cached bytes of files that nobody has open
    pin NAME...          keep the cached bytes, however full the cache is
    unpin NAME...        end that
    verify NAME...       compare the cached bytes with their hashes
    refresh [NAME...]    ask the server again at the next open; without names, read the list again
    connections N|auto   connections per file, 1 to 64
    rate-limit N         bytes per second for all files together, K, M or G may follow; 0: none
    rate-limit N NAME... bytes per second for each of these files

    NAME is a path below the mount point, with the shell's wildcards * ? [...]; put it in double
    quotes where it has spaces. EINVAL: no such command. ENOENT: no such file. EBUSY: in use.
    EPERM: pinned. EMSGSIZE: more than 4096 bytes. See .status for what comes of it.

    """
}
