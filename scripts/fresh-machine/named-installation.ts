/** Heading that scripts/setup.sh prints for an ordinary user before the command that installs missing packages. */
const HEADING = /^setup: Debian packages are missing; .*\n(.+)$/m;

/** Returns the command line that installs the Debian packages named by setup; undefined if it named none. */
export function namedInstallation(standardError: string): string | undefined {
  return HEADING.exec(standardError)?.[1];
}
