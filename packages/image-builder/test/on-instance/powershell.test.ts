import { equal, match, ok } from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  powershellCommand,
  powershellFile,
  powershellLiteral,
  powershellScript,
} from '../../src/on-instance/powershell.ts';

describe('powershellScript', () => {
  const script = powershellScript({
    run: './setup.ps1 it # the last line is a comment',
    environment: { NODEPOOL_IMAGE: "it's", NODEPOOL_SSH_KEY: '$(whoami)\n`n' },
    directory: 'scripts',
  });

  it('is read as UTF-8 by every PowerShell', () => {
    ok(script.startsWith('\uFEFF'));
  });

  it('sets the environment, goes to the directory, runs, and ends with the exit code of what ran last', () => {
    equal(
      script.split('\n').slice(3).join('\n'),
      `Set-Item -LiteralPath 'Env:NODEPOOL_IMAGE' -Value 'it''s'
Set-Item -LiteralPath 'Env:NODEPOOL_SSH_KEY' -Value '$(whoami)
\`n'
Set-Location -LiteralPath 'scripts'
./setup.ps1 it # the last line is a comment
if (Test-Path -LiteralPath Variable:\\LASTEXITCODE) { exit $LASTEXITCODE }
`,
    );
  });

  it('ends at the first error', () => {
    match(script, /^\uFEFF\$ErrorActionPreference = 'Stop'$/m);
  });
});

it('powershellFile has a path as Windows writes it', () => {
  match(powershellFile('build/step 1.ps1'), / -File "build\\step 1\.ps1"$/);
});

it('powershellCommand encodes the script in UTF-16LE and base64', () => {
  const command = powershellCommand("'ü'");
  const [, encoded = ''] = / -EncodedCommand ([A-Za-z0-9+/=]+)$/.exec(command) ?? [];
  equal(Buffer.from(encoded, 'base64').toString('utf16le'), "'ü'");
});

it('powershellLiteral doubles every quote that PowerShell knows', () => {
  equal(powershellLiteral("a'b‘c’d‚e‛f"), "'a''b‘‘c’’d‚‚e‛‛f'");
});
