import { equal, rejects } from 'node:assert/strict';
import { it } from 'node:test';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { serviceAgent } from '../../src/winrm/winrm-login.ts';
import { WinrmService } from '../../src/winrm/winrm-service.ts';
import { WinrmShell } from '../../src/winrm/winrm-shell.ts';
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
  const check = (certificate: string): void => {
    if (pinned !== undefined && certificate !== pinned) throw new Error('the certificate has changed');
    pinned = certificate;
  };
  const agent = serviceAgent(undefined, check, new AbortController().signal);
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
