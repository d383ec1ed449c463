import { equal } from 'node:assert/strict';
import { it } from 'node:test';
import { powershellCommand, powershellLiteral } from '../src/powershell-scripts.ts';

it('powershellCommand encodes the script in UTF-16LE and base64', () => {
  const command = powershellCommand("'ü'");
  const [, encoded = ''] = / -EncodedCommand ([A-Za-z0-9+/=]+)$/.exec(command) ?? [];
  equal(Buffer.from(encoded, 'base64').toString('utf16le'), "'ü'");
});

it('powershellLiteral doubles every character that PowerShell reads as a quote', () => {
  equal(powershellLiteral("a'b‘c’d‚e‛f"), "'a''b‘‘c’’d‚‚e‛‛f'");
});
