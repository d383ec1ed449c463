import { cleanPosix } from './clean-posix.ts';
import type { MachineScript, ScriptLanguage } from './script-language.ts';

/** Where nodepool put scripts, and where the ready-scripts of its nodes look for them. */
const SCRIPT_DIRECTORY = '/opt/nodepool-scripts';

/**
 * What each script begins with. Logins without a terminal may have a very short PATH. The file goes first: a step may
 * hold secrets, and what is open is read to its end.
 */
const BEGINNING = `set -e
rm -f -- "$0"
export PATH=/usr/local/sbin:/sbin:/usr/sbin:/usr/local/bin:/bin:/usr/bin
`;

/** The process group of the step that runs: who takes up the build after a crash ends it. */
const GROUP_FILE = '.nodepool-builder/group';

/** /etc/nodepool is what the nodepool daemon writes to on nodes, where it may not become root any more. */
const PREPARE = `${BEGINNING}
if command -v cloud-init >/dev/null; then cloud-init status --wait >/dev/null 2>&1 || :; fi
if group=$(cat ${GROUP_FILE} 2>/dev/null) && grep -qs nodepool-builder "/proc/$group/cmdline"; then
  kill -KILL -- "-$group" || :
fi
mkdir -p .nodepool-builder/scripts /opt /etc/nodepool
rm -rf ${SCRIPT_DIRECTORY}
mv .nodepool-builder/scripts ${SCRIPT_DIRECTORY}
chmod -R a+rx ${SCRIPT_DIRECTORY}
chmod 0777 /etc/nodepool
`;

const POWER_OFF = `${BEGINNING}
rm -rf .nodepool-builder
sync
poweroff || shutdown -h now || halt -p
`;

/** Scripts for a POSIX shell. */
export const POSIX_SCRIPTS: ScriptLanguage = {
  scriptDirectory: SCRIPT_DIRECTORY,
  extension: '',
  // "exec", so that the script leads the process group that sshd makes
  command: (path, { asAdministrator }, username) =>
    asAdministrator && username !== 'root' ? `exec sudo -n sh ${path}` : `exec sh ${path}`,
  prepare: administratorScript(PREPARE),
  step: (run, environment) => ({
    text: `${BEGINNING}
echo $$ > ${GROUP_FILE}
${exports(environment)}
cd ${SCRIPT_DIRECTORY}
${run}
`,
    asAdministrator: false,
  }),
  clean: (publicKey) => administratorScript(BEGINNING + cleanPosix(publicKey)),
  powerOff: administratorScript(POWER_OFF),
};

function administratorScript(text: string): MachineScript {
  return { text, asAdministrator: true };
}

function exports(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'`)
    .join('\n');
}
