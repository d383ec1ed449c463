import { deepEqual, equal } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { CERTIFICATE, Windows } from './windows.ts';
import { WinrmDouble } from './winrm-double.ts';

/** The client that Ansible uses for Windows. */
const PYWINRM = `
import json, sys, warnings
from winrm.protocol import Protocol
warnings.simplefilter('ignore')
protocol = Protocol(endpoint=sys.argv[1], transport='basic', username='Administrator', password='secret',
                    server_cert_validation='ignore', ca_trust_path=None)
shell = protocol.open_shell(codepage=65001)
command = protocol.run_command(shell, 'greet', ['<you>'])
out, err, code = protocol.get_command_output(shell, command)
protocol.cleanup_command(shell, command)
protocol.close_shell(shell)
print(json.dumps([out.decode(), err.decode(), code]))
`;

it('pywinrm accepts a WinrmDouble as a Windows machine', async (t) => {
  const { program } = new Windows({
    greet: async ({ commandLine, write }) => {
      await write('stdout', `Grüße: ${commandLine}`);
      await write('stderr', 'bad');
      return 3;
    },
  });
  const double = await WinrmDouble.start({ ...CERTIFICATE, program, password: 'secret' });
  undoAfter(t, () => double[Symbol.asyncDispose]());
  double.timeouts = 1;
  const url = `https://127.0.0.1:${double.port}/wsman`;
  // A new environment, from which no proxy or certificate bundle can be taken.
  const env = { LANG: 'C.UTF-8' };
  const { stdout } = await promisify(execFile)('/usr/bin/python3', ['-c', PYWINRM, url], { env });
  deepEqual(JSON.parse(stdout), ['Grüße: greet <you>', 'bad', 3]);
  equal(double.openShells, 0);
});
