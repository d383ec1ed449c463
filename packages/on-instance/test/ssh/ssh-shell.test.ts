import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import ssh2 from 'ssh2';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { HostKey } from '../../src/ssh/host-key.ts';
import { generateKeyPair } from '../../src/ssh/identity.ts';
import { sshLogin } from '../../src/ssh/ssh-login.ts';

test('an SSH command’s exit code is known even if it arrives together with the reply to the start', async (t) => {
  const { privateKey } = generateKeyPair('test');
  const server = new ssh2.Server({ hostKeys: [privateKey] }, (client) => {
    client.on('authentication', (authentication) => authentication.accept());
    client.on('session', (acceptSession) => {
      acceptSession().on('exec', (acceptCommand) => {
        const channel = acceptCommand();
        channel.write('done\n');
        channel.exit(3);
        channel.end();
      });
    });
  });
  undoAfter(t, () => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const login = sshLogin('root', { privateKey, keyFile: 'key' }, new HostKey());
  const shell = await login.connect({ host: '127.0.0.1', port }, t.signal);
  undoAfter(t, () => shell.close());
  const lines: string[] = [];
  const onLine = (line: string): void => void lines.push(line);
  assert.deepEqual(await shell.run('command', { signal: t.signal, onLine }), { exitCode: 3 });
  assert.deepEqual(lines, ['done']);
});
