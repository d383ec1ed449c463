/** What scripts/setup.sh prints for a user who is not root, before the command line that installs what is missing. */
const HEADING = /^setup: Debian packages are missing; .*\n(.+)$/m;

/** The command line by which a user installs the Debian packages that set-up named; undefined if it named none. */
export function namedInstallation(standardError: string): string | undefined {
  return HEADING.exec(standardError)?.[1];
}
