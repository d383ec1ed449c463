import { equal, rejects } from 'node:assert/strict';
import { it } from 'node:test';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { certificateAt, serviceAgent } from '../../src/winrm/service-agent.ts';
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
  const certificate = await certificateAt({ host: '127.0.0.1', port: before?.port ?? 0 }, t.signal);
  const identity = { username: 'Administrator', password: 'pa:ss wörd' };
  const agent = serviceAgent(certificate, undefined);
  const service = new WinrmService({ host: '127.0.0.1', port: after?.port ?? 0 }, identity, agent);
  await rejects(WinrmShell.open(service, t.signal), {
    code: 'instance-failed',
    message: /WinRM does not respond: the certificate has changed/,
  });
  equal(after?.requests, 0);
});
