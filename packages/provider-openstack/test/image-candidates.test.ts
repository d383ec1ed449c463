import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type ImageFilter, latestImage, type UploadRequest } from '@nodepool-builder/image-builder';
import { CloudDouble } from '../../../test/doubles/openstack/cloud-double.ts';
import type { OpenStackApi } from '../../../test/fixtures/openstack/openstack-api.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import type { OpenStackProvider } from '../src/index.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud, type RealCloud } from './real-cloud.ts';

const NAME = 'debian-12';
const FILTER: ImageFilter = { name: [NAME] };
const PATCH = { 'content-type': 'application/openstack-images-v2.1-json-patch' };

/** An account in the cloud with images of one name. */
class Project {
  readonly provider: OpenStackProvider;
  readonly cloud: RealCloud;
  /** Glance's API for an administrator. */
  readonly admin: OpenStackApi;
  readonly #request: UploadRequest;
  #uploads = 0;

  private constructor(
    cloud: RealCloud,
    admin: OpenStackApi,
    provider: OpenStackProvider,
    request: UploadRequest,
  ) {
    this.cloud = cloud;
    this.admin = admin;
    this.provider = provider;
    this.#request = request;
  }

  static async create(t: TestContext): Promise<Project> {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t, { size: 4000 })), externalName: NAME };
    return new Project(cloud, await cloud.admin.glance(), openProvider(t, cloud.settings), request);
  }

  /** Uploads an image that was built on a day in May. */
  async upload(day?: number): Promise<string> {
    this.#uploads += 1;
    const built = day === undefined ? {} : { builtAt: new Date(Date.UTC(2026, 4, day)) };
    const request = { ...this.#request, ...built, uploadId: `u${this.#uploads}` };
    return (await this.provider.upload(request)).externalId;
  }

  async set(id: string, property: string, value: unknown): Promise<void> {
    await this.admin.request(
      'PATCH',
      `/images/${id}`,
      [{ op: 'replace', path: `/${property}`, value }],
      PATCH,
    );
  }

  /** Creates a public image, which is removed after the test. */
  async publish(t: TestContext, id: string): Promise<void> {
    undoAfter(t, () => this.admin.request('DELETE', `/images/${id}`));
    await this.set(id, 'visibility', 'public');
  }

  /** Returns the id of the latest image, and the reasons against the others. */
  async latest(filter: ImageFilter = FILTER): Promise<[string | undefined, Record<string, string>]> {
    const { latest } = latestImage(await this.provider.findImages(filter), filter);
    const all = latestImage(await this.provider.findImages(filter, { withRefused: true }), filter);
    assert.equal(all.latest?.externalId, latest?.externalId);
    const refused = all.refused.map(({ candidate, reason }) => [candidate.externalId, reason]);
    return [latest?.externalId, Object.fromEntries(refused)];
  }
}

describe('the latest image with a name in Glance', () => {
  test('the latest image in Glance is not another project’s, even a newer public one, unless its owner is trusted', async (t) => {
    const [us, them] = [await Project.create(t), await Project.create(t)];
    const ours = await us.upload(1);
    const theirs = await them.upload(2);
    await them.publish(t, theirs);
    const { projectId } = await them.cloud.account.issueToken();
    assert.deepEqual(await us.latest(), [ours, { [theirs]: `its owner is ${projectId}, not self` }]);
    assert.deepEqual(await us.latest({ ...FILTER, owner: ['self', projectId] }), [
      theirs,
      { [ours]: 'it was built earlier, at 2026-05-01T00:00:00.000Z' },
    ]);
    // It does not count as our own upload, although it has all properties of one.
    assert.deepEqual(
      (await us.provider.list()).map(({ externalId }) => externalId),
      [ours],
    );
    await us.provider.discard('u1');
    assert.deepEqual(await us.latest(), [undefined, { [theirs]: `its owner is ${projectId}, not self` }]);
  });

  test('the latest image in Glance is not incomplete, deactivated or hidden', async (t) => {
    const project = await Project.create(t);
    const good = await project.upload(1);
    const [hidden, withdrawn] = [await project.upload(2), await project.upload(3)];
    await project.set(hidden, 'os_hidden', true);
    await project.admin.request('POST', `/images/${withdrawn}/actions/deactivate`);
    const glance = await project.cloud.account.glance();
    const empty = { name: NAME, disk_format: 'raw', container_format: 'bare' };
    const { id: queued } = await glance.request<{ id: string }>('POST', '/images', empty);
    assert.deepEqual(await project.latest(), [
      good,
      { [hidden]: 'it is hidden', [withdrawn]: 'it is deactivated', [queued]: 'it is queued' },
    ]);
  });

  test('the latest image in Glance is the one that was built last, and always the same among equal times', async (t) => {
    const project = await Project.create(t);
    const [newer, older] = [await project.upload(2), await project.upload(1)];
    const early = 'it was built earlier, at 2026-05-01T00:00:00.000Z';
    assert.deepEqual(await project.latest(), [newer, { [older]: early }]);
    const twin = await project.upload(2);
    const [latest, refused] = await project.latest();
    assert.ok(latest === newer || latest === twin);
    assert.deepEqual(Object.keys(refused).toSorted(), [older, latest === newer ? twin : newer].toSorted());
    assert.deepEqual(await project.latest(), [latest, refused]);
  });

  test('the latest image in Glance can be found by each of its properties', async (t) => {
    const project = await Project.create(t);
    const [first, second] = [await project.upload(1), await project.upload(2)];
    await project.set(first, 'tags', ['ci', 'qa']);
    const filters: readonly ImageFilter[] = [
      { name: ['deb*-1?'], tag: ['qa'] },
      { imageName: ['debian'], tag: ['qa', 'none'], visibility: ['private', 'public'] },
      { properties: new Map([['nodepool_upload_id', ['u1']]]) },
      {
        properties: new Map([
          ['disk_format', ['qcow2']],
          ['nodepool_upload_id', ['u1', 'u3']],
        ]),
      },
    ];
    for (const filter of filters) assert.equal((await project.latest(filter))[0], first);
    assert.equal((await project.latest({ architecture: ['x86_64'] }))[0], undefined);
    assert.equal((await project.latest({ properties: new Map([['os', ['debian']]]) }))[0], second);
  });
});

test('a known image that the cloud does not list is requested by its id', async (t) => {
  const cloud = await CloudDouble.start(t);
  const provider = openProvider(t, cloud.settings());
  const { id } = cloud.glance.importImage({ name: NAME, disk_format: 'qcow2' }, Buffer.from('1'));
  cloud.intercept = ({ method, path }) => {
    const isList = method === 'GET' && path === '/v2/images';
    return isList ? { status: 200, body: { images: [] } } : undefined;
  };
  assert.deepEqual(await provider.findImages(FILTER), []);
  const known = await provider.findImages(FILTER, { known: [id, 'gone'] });
  assert.deepEqual(
    known.map(({ externalId, isUsable, isOwn }) => ({ externalId, isUsable, isOwn })),
    [{ externalId: id, isUsable: true, isOwn: true }],
  );
});
