/** Error messages of system calls at the end of a line. */
const SYSTEM_ERRORS = [
  'Connection (?:refused|reset by peer|timed out)',
  'Device or resource busy',
  '(?:Disk|File) quota exceeded',
  'Exec format error',
  'Input/output error',
  '(?:Is|Not) a directory',
  'No route to host',
  'No space left on device',
  'No such (?:device|file or directory)',
  'Operation not permitted',
  'Permission denied',
  'Read-only file system',
  'Temporary failure in name resolution',
].join('|');

/**
 * Matches error lines of the programs that a build runs. Most patterns are anchored, so that a command that a shell
 * traces (`set -x`) does not match.
 */
const STRONG = union([
  // apt
  /^E: (?!Can not write log|Sub-process )/,
  /^Err:\d+ /,
  /^W: Failed to fetch /,
  /^The following packages have unmet dependencies:/,
  /^W: Failure (?:trying to run|while)/, // debootstrap
  /^dpkg(?:-\w+)?: (?:error|dependency problems prevent)/,
  // dnf, dnf4's repository errors, and yum. Also rpm and pacman, which write "error: "
  /^(?:Error|error):(?! [a-z]+(?:-[a-z]+)+$)/,
  /^Errors during downloading metadata /,
  /^(?:No match for argument: |No package .+ available)/,
  /^(?:Failed to resolve the transaction:|Problem repository: )/,
  /^(?:No provider of '.+' found|Problem: )/, // zypper
  // pip, apk, disk-image-create, and logs of diskimage-builder's Python programs
  /^(?:ERROR|CRITICAL):? /,
  /^ {6}error: /,
  /^The virtual environment was not created /,
  /^\s*\S+:\d+:(?:\d+:)? (?:fatal )?error: /, // compilers
  // shells
  /: (?:command not found|unbound variable|bad interpreter: .*|cannot execute.*)$/,
  /: (?:line )?\d+: .*(?:not found|syntax error.*|parameter not set)$/,
  /: line \d+: +\d+ (?:Killed|Segmentation fault|Aborted|Bus error|Terminated)\b/,
  // mounts and disks
  /^mount: (?!\(hint\))/,
  /^(?:losetup|kpartx|sfdisk|parted|mkfs[.\w]*|mke2fs|qemu-img|chroot|unshare|debootstrap): (?!warning)/,
  // downloads
  /^curl: \(\d+\) /,
  /^wget: |^\S+ \S+ ERROR \d+: /,
  /^fatal: /, // git and Ansible
  /^(?:ssh: |Host key verification failed)/,
  /^sudo: (?!unable to resolve host)/,
  /^tar: .*(?:Cannot |not recoverable|Wrote only)/,
  RegExp(`^[\\w./+-]+: .*(?:${SYSTEM_ERRORS})\\.?$`),
]);

/** Matches error lines that only repeat that something failed, or are common in a cleanup. */
const WEAK = union([
  /^E: Sub-process /,
  /^ *error: [a-z-]+$/,
  /^\s*make(?:\[\d+\])?: \*\*\* /,
  /^(?:umount|rmdir|rm|kill|losetup|fuser)(?:: |\()/,
  /^(?:tar: Child returned|gzip: stdin|xz: \(stdin\))/,
]);

/** Time that disk-image-create writes before each line. Its package-installs adds `> ` to the output of apt and dnf. */
const PREFIX = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \| ?(?:> )?/;

/** A command that a shell traces. */
const TRACE = /^\++ /;

/** The trace of a cleanup at the exit of a script. nodepool makes disk-image-create trace its commands. */
const CLEANUP = /^\++ (?:\S+ +: +)?(?:trap_)?clean_?up$/;

const STEP_END = /^dib-run-parts .*\bcompleted$/;

/** Returns `install.d/01-package-installs` for a line in which dib-run-parts announces this step. */
function stepOf(line: string): string | undefined {
  const [path = '', verb] = line.split(' ').toReversed();
  return verb === 'Running' && path.includes('/') ? path.split('/').slice(-2).join('/') : undefined;
}

/** Patterns of lines without a reason, by program. */
const NOISE = RegExp(
  [
    '(?:DEBUG|INFO) \\w+\\.|dib-run-parts |returncode: |install-packages failed', // diskimage-builder
    'During handling|The above exception', // Python
    '(?:note|hint): |[×╰]|\\[end of output\\]', // pip
    'Errors were encountered while processing', // dpkg
    '\\(try to add ', // dnf
    'dmesg\\(1\\) may', // mount
  ]
    .map((start) => `^\\s*(?:${start})`)
    .join('|'),
);

/** Maximum number of other lines between two lines of one error. */
const MAX_GAP = 5;

const SHOWN_ERRORS = 4;
const SHOWN_OTHERS = 3;

/**
 * Finds the output lines of a failed command that show why it failed.
 *
 * The decisive error is the last one before the cleanup began. A build survives earlier errors (`|| true`, a completed
 * step of diskimage-builder), and later ones are consequences. An error consists of all error lines that are close
 * together in the output, with no traced command in between. Its first line is the cause, and later ones are often
 * consequences. Weak lines count only if there are no others.
 */
export class DecisiveLines {
  /** The current step of diskimage-builder: `install.d/50-agent`. At the end, it is the failed step if there is one. */
  step: string | undefined;
  #errors: string[] = [];
  #isWeak = false;
  /** Number of other lines since the last line of the error. */
  #gap = 0;
  /** True if a command was traced after the error. */
  #isOver = false;
  #isCleanup = false;
  /** True if indented lines that follow belong to the error. */
  #isOpen = false;
  /** Column of the traceback that is being read. */
  #traceback: number | undefined;
  /** Last lines of the step that are neither traces nor noise. */
  #others: string[] = [];
  /** Last lines of any kind. */
  #last: string[] = [];

  /** Processes the next line of the output. */
  add(line: string): void {
    const text = line.replace(PREFIX, '').trimEnd();
    if (text === '') return;
    keep(this.#last, text);
    if (text.startsWith('+') && TRACE.test(text)) {
      this.#isOver = true;
      this.#isOpen = false;
      this.#isCleanup ||= CLEANUP.test(text);
      return;
    }
    if (text.startsWith('dib-run-parts ') && (stepOf(text) !== undefined || STEP_END.test(text))) {
      this.#begin(stepOf(text));
      return;
    }
    if (!this.#isCleanup) this.#read(text);
  }

  /** Lines that show why the command failed, or its last ones if no line shows an error. */
  get lines(): readonly string[] {
    const errors = this.#errors;
    const other = this.#others.at(-1);
    if (errors.length === 0) return other === undefined ? this.#last : this.#others;
    const shown =
      errors.length <= SHOWN_ERRORS ? errors : [...errors.slice(0, SHOWN_ERRORS - 1), '…', errors.at(-1)];
    // A command that continued after the error may have failed for another reason, which no pattern matches.
    return [...shown, ...(this.#gap === 0 ? [] : ['…', other])].map((text = '') => text.trim());
  }

  #begin(step: string | undefined): void {
    this.step = step;
    this.#errors = [];
    this.#others = [];
    this.#isCleanup = false;
    this.#traceback = undefined;
  }

  #read(text: string): void {
    const column = text.search(/\S/);
    const traceback = this.#traceback;
    if (text.endsWith('Traceback (most recent call last):')) {
      this.#traceback = column;
      return;
    }
    if (traceback !== undefined && column > traceback) return;
    this.#traceback = undefined;
    if (traceback !== undefined || STRONG.test(text)) this.#addError(text, false);
    else if (WEAK.test(text)) this.#addError(text, true);
    else if (this.#errors.length > 0 && column > 0 && !NOISE.test(text)) {
      if (this.#isOpen) this.#pushError(text);
    } else {
      this.#isOpen = false;
      if (NOISE.test(text)) return;
      this.#gap += 1;
      keep(this.#others, text);
    }
  }

  #addError(text: string, isWeak: boolean): void {
    const isFirst = this.#errors.length === 0;
    if (isWeak && !isFirst) return;
    if (isFirst || this.#isOver || this.#gap > MAX_GAP || this.#isWeak) this.#errors = [];
    if (!this.#errors.includes(text)) this.#pushError(text);
    this.#isWeak = isWeak;
    this.#gap = 0;
    this.#isOver = false;
    this.#isOpen = true;
  }

  /** Keeps the first lines of an error, and its last one. */
  #pushError(text: string): void {
    this.#errors.push(text);
    if (this.#errors.length > SHOWN_ERRORS + 1) this.#errors.splice(SHOWN_ERRORS - 1, 1);
  }
}

function union(patterns: readonly RegExp[]): RegExp {
  return RegExp(patterns.map(({ source }) => `(?:${source})`).join('|'));
}

function keep(lines: string[], text: string): void {
  lines.push(text);
  if (lines.length > SHOWN_OTHERS) lines.shift();
}
