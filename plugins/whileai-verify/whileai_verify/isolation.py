"""The walls around code that a model wrote: namespaces, a private file system, seccomp, Landlock, resource limits.

Runs in a freshly forked process, before any untrusted code. Levels, strongest first:

* `namespaces`: own mount, network, process, IPC and host-name namespaces; a root that holds the interpreter and the
  system libraries read-only and one small writable directory; an unprivileged user; then also everything below;
* `landlock`: Landlock rules on files (and TCP where the kernel knows it), seccomp, resource limits;
* `process`: resource limits in a process of its own. No protection of files or of the network.

Nothing here decides a verdict. Linux only, through the C library; other systems have the level `process`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "LEVELS",
    "close_fds",
    "drop_capabilities",
    "enter_files_and_calls",
    "enter_namespaces",
    "limit_resources",
    "readable_paths",
]

LEVELS = ("namespaces", "landlock", "process")

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
_MNT_DETACH = 2
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_SET_DUMPABLE, _PR_SET_PDEATHSIG = 38, 22, 4, 1


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def readable_paths() -> list[str]:
    """Return the directories that an interpreter needs: the system's libraries and both prefixes of this Python."""
    wanted = [
        "/usr",
        "/lib",
        "/lib64",
        "/bin",
        "/sbin",
        "/etc/ld.so.cache",
        "/etc/localtime",
        sys.prefix,
        sys.base_prefix,
    ]
    wanted += [str(Path(sys.executable).resolve().parent.parent)]
    paths: list[str] = []
    for path in wanted:
        if Path(path).exists() and path not in paths and not any(path.startswith(p + "/") for p in paths):
            paths.append(path)
    return paths


def enter_namespaces(root: str) -> list[str]:
    """Move this process, and every later child, into namespaces of its own with a private read-only root.

    Args:
        root: An existing empty directory to build the new root on; nothing is visible there from outside.

    Returns:
        Names of the layers that hold.

    Raises:
        OSError: A step is not permitted here; untrusted code must not be run at this level.
    """
    libc = _libc()
    flags = _NEWNS | _NEWUTS | _NEWIPC | _NEWNET
    user, group = os.getuid(), os.getgid()
    _check(libc.unshare(flags | (_NEWUSER if user else 0)), "unshare")
    if user:
        _PROC.append(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))  # the new root has no /proc of its own yet
        _map_ids(user, group)
    _build_root(libc, root)
    with contextlib.suppress(OSError):
        _check(libc.sethostname(b"sandbox", 7), "sethostname")
    return ["mount", "network", "ipc", *(["user"] if user else [])]


_PROC: list[int] = []


def _map_ids(user: int, group: int) -> None:
    """Give a new user namespace this user and this group, and nobody else."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        fd = os.open(f"self/{name}", os.O_WRONLY, dir_fd=_PROC[0])
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def private_directory(disk_mb: int, uid: int) -> None:
    """Give this process a writable directory of its own; its next child is the first of a new process namespace.

    Args:
        disk_mb: MiB of the directory.
        uid: Its owner, where this process is root.
    """
    libc = _libc()
    user, group = os.getuid(), os.getgid()
    _check(libc.unshare(_NEWNS | _NEWPID | (_NEWUSER if user else 0)), "unshare processes")
    if user:  # a user namespace for each job, so that one candidate's processes do not count for another
        _map_ids(user, group)
    hidden = _paths_under_tmp()
    _mount(libc, "tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={disk_mb}m,mode=755,nr_inodes=20000")
    Path("/tmp/work").mkdir(mode=0o700)
    if os.getuid() == 0:
        os.chown("/tmp/work", uid, uid)
    for number, path in enumerate(hidden):
        Path(path).mkdir(parents=True)
        _bind(libc, f"/kept/{number}", path)
    os.chdir("/tmp/work")


def _mount(libc: Any, source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    _check(
        libc.mount(
            source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
        ),
        f"mount {target}",
    )


def _bind(libc: Any, source: str, target: str) -> None:
    """Show `source` at `target`, read-only."""
    _mount(libc, source, target, "", _MS_BIND | _MS_REC)
    _mount(libc, "none", target, "", _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _paths_under_tmp() -> list[str]:
    """Return what the interpreter needs under /tmp, which the private directory hides: an environment made there."""
    return [path for path in readable_paths() if path.startswith("/tmp/")]


def _build_root(libc: Any, root: str) -> None:
    _mount(libc, "none", "/", "", _MS_REC | _MS_PRIVATE)
    _mount(libc, "tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=4m,mode=755")
    for path in readable_paths():
        target = root + path
        if Path(path).is_symlink():
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(target).symlink_to(Path(path).readlink())
            continue
        if Path(path).is_dir():
            Path(target).mkdir(parents=True, exist_ok=True)
        else:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(target).touch()
        _bind(libc, path, target)
    for number, path in enumerate(_paths_under_tmp()):
        Path(f"{root}/kept/{number}").mkdir(parents=True)
        _bind(libc, path, f"{root}/kept/{number}")
    Path(root + "/dev").mkdir()
    for device in ("null", "zero", "urandom", "random"):
        Path(f"{root}/dev/{device}").touch()
        _mount(libc, f"/dev/{device}", f"{root}/dev/{device}", "", _MS_BIND)
    Path(root + "/proc").mkdir()
    Path(root + "/tmp").mkdir(exist_ok=True)  # it is there where the interpreter's own files are under /tmp
    os.chdir(root)
    Path(root + "/old").mkdir()
    _check(libc.syscall(_nr("pivot_root"), b".", b"old"), "pivot_root")
    os.chdir("/")
    _check(libc.umount2(b"/old", _MNT_DETACH), "umount old root")
    Path("/old").rmdir()
    _mount(libc, "none", "/", "", _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def mount_proc() -> bool:
    """Mount `/proc` of the new process namespace (in its first process); `False` where that is not permitted."""
    try:
        _mount(_libc(), "proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    except OSError:
        return False
    return True


def drop_user(uid: int) -> None:
    """Become an unprivileged user for good, where this process is root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def drop_capabilities() -> None:
    """Give up every capability, also those inside a user namespace."""
    if sys.platform.startswith("linux"):
        header = struct.pack("<Ii", 0x20080522, 0)
        number = 126 if platform.machine() == "x86_64" else 91
        _check(_libc().syscall(number, ctypes.c_char_p(header), ctypes.c_char_p(bytes(24))), "capset")


def limit_resources(limits: Mapping[str, int]) -> None:
    """Set the resource limits: memory, CPU time, processes, file size, open files, no core files."""
    import resource

    mb = 1 << 20
    wanted = {
        resource.RLIMIT_AS: limits["memory_mb"] * mb,
        resource.RLIMIT_DATA: limits["memory_mb"] * mb,
        resource.RLIMIT_CPU: limits["cpu_s"],
        resource.RLIMIT_FSIZE: limits["file_mb"] * mb,
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_CORE: 0,
    }
    if hasattr(resource, "RLIMIT_NPROC"):
        wanted[resource.RLIMIT_NPROC] = limits["processes"]
    for name in ("RLIMIT_MSGQUEUE", "RLIMIT_MEMLOCK"):
        if hasattr(resource, name):
            wanted[getattr(resource, name)] = 0
    for which, value in wanted.items():
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (value, value))


def close_fds(keep: set[int]) -> None:
    """Close every file descriptor except those to keep."""
    last = -1
    for fd in sorted(keep):
        if fd > last + 1:  # an empty range that starts at 0 closes everything
            os.closerange(last + 1, fd)
        last = fd
    os.closerange(last + 1, 4096)


# --- seccomp and Landlock --------------------------------------------------------------------------------------------

_CALLS = {  # name: (x86_64, aarch64)
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "open_tree": (428, 428),
    "mount_setattr": (442, 442),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "syslog": (103, 116),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "vhangup": (153, 58),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "personality": (135, 92),
    "bind": (49, 200),
    "connect": (42, 203),
    "listen": (50, 201),
}


def _nr(name: str) -> int:
    return _CALLS[name][0 if platform.machine() == "x86_64" else 1]


_SOCKET, _CLONE, _CLONE3 = {"x86_64": (41, 56, 435), "aarch64": (198, 220, 435)}.get(platform.machine(), (0, 0, 0))
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_AF_UNIX = 1


_SIGNALS = {  # name: (x86_64, aarch64); the first argument is the process
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}


def _filter(own_signals: bool) -> bytes:
    """Return the program: refuse the calls above, sockets that are not local, new namespaces, foreign call tables.

    Args:
        own_signals: Let this process signal itself and its own group only: where there is no process namespace, the
            other processes of the user are in reach.
    """
    deny = _ERRNO | _EPERM
    code: list[tuple[int, int, int, int]] = [
        (_LD, 0, 0, 4),
        (_JEQ, 1, 0, _ARCH[platform.machine()]),
        (_RET, 0, 0, _KILL),
        (_LD, 0, 0, 0),
        (_JGE, 0, 1, 0x40000000),
        (_RET, 0, 0, _KILL),
    ]
    for name in _CALLS:
        code += [(_JEQ, 0, 1, _nr(name)), (_RET, 0, 0, deny)]
    for numbers in _SIGNALS.values() if own_signals else ():
        number = numbers[0 if platform.machine() == "x86_64" else 1]
        code += [(_JEQ, 0, 5, number), (_LD, 0, 0, 16), (_JEQ, 2, 0, os.getpid()), (_JEQ, 1, 0, 0)]
        code += [(_RET, 0, 0, deny), (_RET, 0, 0, _ALLOW)]
    code += [(_JEQ, 0, 1, _CLONE3), (_RET, 0, 0, _ERRNO | _ENOSYS)]
    namespaces = _NEWNS | _NEWUTS | _NEWIPC | _NEWUSER | _NEWPID | _NEWNET | 0x02000000
    code += [(_JEQ, 0, 4, _CLONE), (_LD, 0, 0, 16), (_JSET, 0, 1, namespaces), (_RET, 0, 0, deny), (_RET, 0, 0, _ALLOW)]
    code += [(_JEQ, 0, 3, _SOCKET), (_LD, 0, 0, 16), (_JEQ, 1, 0, _AF_UNIX), (_RET, 0, 0, deny)]
    code += [(_RET, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *line) for line in code)


def _seccomp(libc: Any, own_signals: bool) -> bool:
    if platform.machine() not in _ARCH:
        return False
    program = _filter(own_signals)
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("<H6xQ", len(program) // 8, ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(head), 0, 0) == 0)


_LL_CREATE, _LL_ADD, _LL_RESTRICT = 444, 445, 446
_LL_READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read file, read directory
_LL_DIR_ONLY = (1 << 3) | 0b1111111110000


def landlock_abi() -> int:
    """Return the version of Landlock that the kernel offers, 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc().syscall(_LL_CREATE, None, 0, 1)))


def _landlock(libc: Any, readable: list[str], writable: list[str]) -> bool:
    abi = landlock_abi()
    if abi < 1:
        return False
    rights = (1 << 13) - 1
    rights |= (1 << 13 if abi >= 2 else 0) | (1 << 14 if abi >= 3 else 0) | (1 << 15 if abi >= 5 else 0)
    net = 0b11 if abi >= 4 else 0
    scoped = 0b11 if abi >= 6 else 0
    attributes = struct.pack("<QQQ", rights, net, scoped)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = libc.syscall(_LL_CREATE, ctypes.c_char_p(attributes), len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for paths, allowed in ((readable, _LL_READ), (writable, rights & ~(1 << 15))):
            for path in paths:
                flags = os.O_PATH | os.O_CLOEXEC
                with contextlib.suppress(OSError):
                    fd = os.open(path, flags)
                    grant = allowed & rights
                    if not Path(path).is_dir():
                        grant &= ~_LL_DIR_ONLY
                    if path.startswith("/dev/"):
                        grant |= 0b110 & rights
                    rule = struct.pack("<Qi", grant, fd)
                    _check(libc.syscall(_LL_ADD, ruleset, 1, ctypes.c_char_p(rule), 0), f"landlock {path}")
                    os.close(fd)
        return bool(libc.syscall(_LL_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def enter_files_and_calls(level: str, work: str, extra_readable: list[str]) -> list[str]:
    """Forbid new privileges, files outside of the work directory, and dangerous system calls, for good.

    Args:
        level: The level of the job; `process` leaves the files as they are.
        work: The only directory that stays writable.
        extra_readable: Further paths that stay readable.

    Returns:
        Names of the layers that hold.
    """
    if not sys.platform.startswith("linux"):
        return []
    libc = _libc()
    layers: list[str] = []
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return []
    devices = [f"/dev/{d}" for d in ("null", "zero", "urandom", "random")]
    if level != "process" and _landlock(libc, [*readable_paths(), *devices, *extra_readable], [work]):
        layers.append("landlock")
    if _seccomp(libc, own_signals=level != "namespaces"):
        layers.append("seccomp")
    return layers


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends."""
    if sys.platform.startswith("linux"):
        _libc().prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)


def become_subreaper() -> None:
    """Make orphaned descendants children of this process, so that it can kill them."""
    if sys.platform.startswith("linux"):
        _libc().prctl(36, 1, 0, 0, 0)
