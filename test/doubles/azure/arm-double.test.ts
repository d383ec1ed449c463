// Not a unit test: it starts Azurite.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ComputeManagementClient } from '@azure/arm-compute';
import { AnonymousCredential, PageBlobClient } from '@azure/storage-blob';
import { startDouble } from '../../../packages/provider-azure/test/azure-fixture.ts';
import type { ArmDoubleOptions } from './arm-cloud.ts';
import type { ArmDouble } from './arm-double.ts';

const MEBIBYTE = 1_048_576;

const UPLOAD = {
  location: 'westeurope',
  properties: { creationData: { createOption: 'Upload', uploadSizeBytes: 20 * MEBIBYTE + 512 } },
};

interface Answer {
  readonly status: number;
  readonly code?: string | undefined;
  readonly body: Record<string, unknown>;
}

type Request = (method: string, path: string, body?: unknown, version?: string) => Promise<Answer>;

/** Sends requests as any client does, with a valid token. */
async function start(
  t: TestContext,
  options: Partial<ArmDoubleOptions> = {},
): Promise<{ readonly double: ArmDouble; readonly request: Request }> {
  const double = await startDouble(t, options);
  const { token } = double.issueToken();
  const scope = `/subscriptions/${double.subscription}/resourceGroups/images/providers/Microsoft.Compute`;
  const request: Request = async (method, path, body, version = '2026-03-02') => {
    const response = await fetch(`${double.endpoint}${scope}/${path}?api-version=${version}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
    return { status: response.status, code: (json.error as { code?: string } | undefined)?.code, body: json };
  };
  return { double, request };
}

test('a request that does not fit the model is rejected by the Azure double', async (t) => {
  const { request } = await start(t);
  const { properties, location } = UPLOAD;
  const refused: readonly (readonly [unknown, string])[] = [
    [{ ...UPLOAD, colour: 'red' }, 'InvalidRequestContent'],
    [{ ...UPLOAD, properties: { ...properties, diskSizeGb: 1 } }, 'InvalidRequestContent'],
    [{ ...UPLOAD, location: undefined }, 'LocationRequired'],
    [{ ...UPLOAD, location: 'atlantis' }, 'LocationNotAvailableForResourceType'],
    [{ ...UPLOAD, sku: { name: 'Floppy' } }, 'InvalidParameter'],
    [{ ...UPLOAD, tags: { 'a/b': 'c' } }, 'InvalidTagName'],
    [{ ...UPLOAD, tags: { a: 'c'.repeat(257) } }, 'InvalidTagValue'],
    [{ location, properties: { creationData: { createOption: 'Upload' } } }, 'InvalidParameter'],
    [
      { location, properties: { creationData: { createOption: 'Upload', uploadSizeBytes: 20 * MEBIBYTE } } },
      'InvalidParameter',
    ],
  ];
  for (const [body, code] of refused) {
    assert.equal((await request('PUT', 'disks/d', body)).code, code, JSON.stringify(body));
  }
  assert.equal((await request('PUT', 'disks/a b', UPLOAD)).code, 'InvalidParameter');
  assert.equal((await request('PUT', 'disks/d', UPLOAD, '2019-01-01')).code, 'NoRegisteredProviderFound');
  assert.equal((await request('PUT', 'disks/d', UPLOAD)).status, 202);
});

test('a request without a valid token is rejected by the Azure double', async (t) => {
  const double = await startDouble(t, { tokenLifetime: -1 });
  const url = `${double.endpoint}/subscriptions/x?api-version=1`;
  for (const token of ['none', double.issueToken().token]) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(response.status, 401);
  }
});

test('lists in the Azure double are paged, and lag', async (t) => {
  const { request, double } = await start(t, { lag: 1, pageSize: 2 });
  for (const name of ['a', 'b', 'c']) await request('PUT', `disks/${name}`, UPLOAD);
  assert.deepEqual((await request('GET', 'disks')).body, { value: [] });
  const credential = { getToken: () => Promise.resolve(double.issueToken()) };
  const { body } = await request('GET', 'disks');
  assert.equal((body.value as unknown[]).length, 2);
  assert.match(String(body.nextLink), /skiptoken=2/);
  // The SDK itself does not send tokens to a server without TLS.
  const client = new ComputeManagementClient(credential, double.subscription, { endpoint: double.endpoint });
  await assert.rejects(
    Array.fromAsync(client.disks.listByResourceGroup('images')),
    /non-https|allowInsecure/,
  );
});

test('a disk in the Azure double accepts pages between the grant and the end of access', async (t) => {
  const { request, double } = await start(t, { polls: 0 });
  await request('PUT', 'disks/d', UPLOAD);
  await request('GET', 'disks/d');
  const access = { access: 'Write', durationInSeconds: 60 };
  const granted = await fetch(await locationOf(double, 'disks/d/beginGetAccess', access), tokenOf(double));
  const { accessSAS } = (await granted.json()) as { accessSAS: string };
  const pages = new PageBlobClient(accessSAS, new AnonymousCredential());
  await pages.uploadPages(Buffer.alloc(512, 1), 0, 512);
  const state = async (): Promise<unknown> =>
    ((await request('GET', 'disks/d')).body.properties as Record<string, unknown>).diskState;
  assert.equal(await state(), 'ActiveUpload');
  assert.equal((await request('DELETE', 'disks/d')).code, 'OperationNotAllowed');
  const image = {
    location: 'westeurope',
    properties: {
      storageProfile: {
        osDisk: {
          osType: 'Linux',
          osState: 'Generalized',
          managedDisk: { id: double.ofType('Microsoft.Compute/disks')[0]?.id },
        },
      },
    },
  };
  assert.equal((await request('PUT', 'images/i', image, '2026-04-01')).code, 'OperationNotAllowed');
  await fetch(await locationOf(double, 'disks/d/endGetAccess'), tokenOf(double));
  assert.equal(await state(), 'Unattached');
  await assert.rejects(pages.uploadPages(Buffer.alloc(512, 1), 0, 512), /403|authenticate/);
  assert.equal((await request('POST', 'disks/d/beginGetAccess', access)).code, 'OperationNotAllowed');
  assert.equal((await request('PUT', 'images/i', image, '2026-04-01')).status, 202);
  const { properties } = (await request('GET', 'images/i', undefined, '2026-04-01')).body;
  const { provisioningState } = properties as Record<string, unknown>;
  assert.equal(provisioningState, 'Failed', 'a disk without a footer is no VHD');
});

async function locationOf(double: ArmDouble, path: string, body?: unknown): Promise<string> {
  const scope = `/subscriptions/${double.subscription}/resourceGroups/images/providers/Microsoft.Compute`;
  const response = await fetch(`${double.endpoint}${scope}/${path}?api-version=2026-03-02`, {
    method: 'POST',
    ...tokenOf(double),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return response.headers.get('location') ?? '';
}

function tokenOf(double: ArmDouble): { headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${double.issueToken().token}` } };
}
