import { cleanPosix } from './clean-posix.ts';
import type { MachineScript, ScriptLanguage } from './script-language.ts';

/** Directory of nodepool's scripts, which the ready-scripts of its nodes expect. */
const SCRIPT_DIRECTORY = '/opt/nodepool-scripts';

/**
 * First lines of each script. Logins without a terminal may have a very short PATH. The script removes its file, because
 * a step may contain secrets; the open file remains readable.
 */
const BEGINNING = `set -e
rm -f -- "$0"
export PATH=/usr/local/sbin:/sbin:/usr/sbin:/usr/local/bin:/bin:/usr/bin
`;

/** File with the process group of the running step, which a resumed build ends. */
const GROUP_FILE = '.nodepool-builder/group';

/** The nodepool daemon writes to /etc/nodepool on nodes, without root. */
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
  // "exec" makes the script the leader of the process group of sshd
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
