import { equal, rejects } from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { it } from 'node:test';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { serviceAgent } from '../../src/winrm/winrm-login.ts';
import { WinrmService } from '../../src/winrm/winrm-service.ts';
import { WinrmShell } from '../../src/winrm/winrm-shell.ts';
import { xml } from '../../src/winrm/xml.ts';
import { CERTIFICATE, Windows } from './windows.ts';
import { WinrmDouble } from './winrm-double.ts';

it('a WinRM client sends nothing to a machine with another certificate', async (t) => {
  const { program } = new Windows();
  const [before, after] = await Promise.all(
    [await selfSigned(), CERTIFICATE].map((certificate) => WinrmDouble.start({ ...certificate, program })),
  );
  undoAfter(t, () => before?.[Symbol.asyncDispose]());
  undoAfter(t, () => after?.[Symbol.asyncDispose]());
  let pinned: string | undefined;
  const identity = { username: 'Administrator', password: 'pa:ss wörd' };
  const agent = serviceAgent(undefined, (certificate) => {
    if (pinned !== undefined && certificate !== pinned) throw new Error('the certificate has changed');
    pinned = certificate;
  });
  const serviceOf = (port = 0): WinrmService =>
    new WinrmService({ host: '127.0.0.1', port }, identity, agent);
  await WinrmShell.open(serviceOf(before?.port), t.signal);
  const service = serviceOf(after?.port);
  await rejects(WinrmShell.open(service, t.signal), {
    code: 'instance-failed',
    message: /WinRM does not respond: the certificate has changed/,
  });
  equal(after?.requests, 0);
});

it('a WinRM request times out during a handshake, and ends the connection', async (t) => {
  const server = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
  undoAfter(t, () => server.close());
  await once(server, 'listening');
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const agent = serviceAgent(undefined, () => {});
  const service = new WinrmService(address, { username: 'Administrator', password: 'pa:ss wörd' }, agent);
  const connected = once(server, 'connection');
  const asking = rejects(service.ask({ action: 'Create', body: xml`` }, undefined, 1_000), {
    code: 'instance-failed',
  });
  const [socket] = (await connected) as [Socket];
  undoAfter(t, () => socket.destroy());
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(10_000) });
  await asking;
  await closed;
});
