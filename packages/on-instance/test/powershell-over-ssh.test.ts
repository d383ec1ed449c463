import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { withCode } from '../../../test/fixtures/with-code.ts';
import type { OnInstance } from '../src/index.ts';
import { OnInstanceSite } from './on-instance-site.ts';

/**
 * Replaces PowerShell, which Debian does not have: reads its arguments, stores the script, and supports the few
 * statements that end a script or a machine.
 */
const STAND_IN = `#!/bin/sh
for path; do :; done
mkdir -p /opt/ran
cp "$path" /opt/ran/
echo "$*" >> /opt/ran/arguments
while IFS= read -r line; do
  case $line in
    'Remove-Item -LiteralPath $PSCommandPath') rm "$path" ;;
    'Remove-Item -Recurse -Force -LiteralPath .nodepool-builder') rm -r .nodepool-builder ;;
    "Write-Output '"*) text=\${line#*\\'}; echo "\${text%\\'}" ;;
    'exit '[0-9]*) exit "\${line#exit }" ;;
    Stop-Computer*) poweroff ;;
    *sysprep.exe*) if [ -e /opt/refuse ]; then echo 'it was generalised before'; exit 87; fi
      touch /opt/generalised; poweroff ;;
  esac
done < "$path"
`;

const WINDOWS: Partial<OnInstance> = { shell: 'powershell' };

async function start(t: TestContext): Promise<OnInstanceSite> {
  const site = await OnInstanceSite.start(t);
  await mkdir(join(site.base, 'usr-local/bin'), { recursive: true });
  await writeFile(join(site.base, 'usr-local/bin/powershell'), STAND_IN, { mode: 0o755 });
  return site;
}

test('PowerShell steps run from a file that removes itself', async (t) => {
  const site = await start(t);
  const steps = ["Write-Output 'Grüße'"];
  const builder = site.builder({ ...WINDOWS, steps }, { envVars: { NAME: "it's $me" } });
  const image = await site.build(builder, { environment: { NODEPOOL_KEY: 'AAAA' } });
  assert.ok(site.lines.includes('Grüße'));
  assert.equal(
    site.read(image, 'opt/ran/arguments').split('\n')[1],
    '-NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -File .nodepool-builder/step-0.ps1',
  );
  const script = site.read(image, 'opt/ran/step-0.ps1').split('\n');
  assert.equal(script[0], "\uFEFF$ErrorActionPreference = 'Stop'");
  assert.ok(script.includes("$env:NODEPOOL_KEY = 'AAAA'"));
  assert.ok(script.includes("$env:NAME = 'it''s $me'"));
  assert.ok(script.includes(String.raw`Set-Location -LiteralPath C:\nodepool-scripts`));
  const names = site.names(image);
  assert.ok(names.includes('./opt/ran/prepare.ps1') && names.includes('./opt/ran/clean.ps1'));
  assert.ok(!names.includes('./root/.nodepool-builder/'));
  assert.ok(!names.includes('./opt/generalised'));
  assert.equal(site.provider.instance.pushes, 0);
});

test('a PowerShell step with a non-zero exit code fails', async (t) => {
  const site = await start(t);
  const steps = ["Write-Output 'no such package'\nexit 4"];
  await assert.rejects(
    site.build(site.builder({ ...WINDOWS, steps })),
    withCode('command-failed', /ended with exit code 4, saying: no such package/),
  );
});

test('sysprep generalizes Windows and powers it off', async (t) => {
  const site = await start(t);
  const image = await site.build(site.builder({ ...WINDOWS, sysprep: true }));
  assert.ok(site.names(image).includes('./opt/generalised'));
  assert.equal(site.provider.instance.pushes, 0);
});

test('a build whose sysprep fails captures nothing', async (t) => {
  const site = await start(t);
  await mkdir(join(site.base, 'opt'));
  await writeFile(join(site.base, 'opt/refuse'), '');
  await assert.rejects(
    site.build(site.builder({ ...WINDOWS, sysprep: true })),
    withCode('command-failed', /^sysprep ended with exit code 87, saying: it was generalised before/),
  );
  assert.equal(site.provider.instance.pushes, 0);
  assert.ok(!existsSync(`${site.provider.instance.disk}.tar`));
});
