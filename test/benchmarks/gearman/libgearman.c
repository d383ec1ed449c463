/*
 * A worker, a client and a holder of many functions on libgearman, for benchmarks. Each line of standard input is a
 * request, and gets one line in response.
 *
 *   libgearman worker HOST PORT FUNCTION     echoes until it is ended
 *   libgearman client HOST PORT FUNCTION     request: IN-FLIGHT BYTES MILLISECONDS   response: JOBS SECONDS
 *   libgearman functions HOST PORT           requests: register COUNT, unregister COUNT   response: ok
 */
#include <libgearman/gearman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *function;
static char *payload;
static size_t bytes;
static double deadline;
static unsigned long jobs;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void fail(const char *what) {
  fprintf(stderr, "libgearman: %s\n", what);
  exit(1);
}

static gearman_return_t echo(gearman_job_st *job, void *context) {
  (void)context;
  const size_t size = gearman_job_workload_size(job);
  return gearman_job_send_complete(job, gearman_job_workload(job), size) == GEARMAN_SUCCESS ? GEARMAN_SUCCESS
                                                                                            : GEARMAN_ERROR;
}

static gearman_worker_st *new_worker(const char *host, in_port_t port) {
  gearman_worker_st *worker = gearman_worker_create(NULL);
  if (worker == NULL || gearman_worker_add_server(worker, host, port) != GEARMAN_SUCCESS) fail("no worker");
  return worker;
}

static void define(gearman_worker_st *worker, const char *name) {
  const gearman_function_t body = gearman_function_create(echo);
  if (gearman_worker_define_function(worker, name, strlen(name), body, 0, NULL) != GEARMAN_SUCCESS)
    fail(gearman_worker_error(worker));
}

static void work(const char *host, in_port_t port) {
  gearman_worker_st *worker = new_worker(host, port);
  gearman_worker_add_options(worker, GEARMAN_WORKER_GRAB_UNIQ);
  define(worker, function);
  for (;;)
    if (gearman_worker_work(worker) != GEARMAN_SUCCESS) fail(gearman_worker_error(worker));
}

/* Each finished job starts the next one, so that the number in flight stays the same until the time is over. */
static void submit(gearman_client_st *client) {
  gearman_return_t outcome;
  gearman_client_add_task(client, NULL, client, function, NULL, payload, bytes, &outcome);
  if (outcome != GEARMAN_SUCCESS) fail(gearman_client_error(client));
}

static gearman_return_t completed(gearman_task_st *task) {
  if (gearman_task_data_size(task) != bytes) fail("a result is not what was sent");
  jobs += 1;
  if (now() < deadline) submit(gearman_task_context(task));
  return GEARMAN_SUCCESS;
}

static gearman_return_t failed(gearman_task_st *task) {
  (void)task;
  fail("a job failed");
  return GEARMAN_ERROR;
}

static void serve_client(const char *host, in_port_t port) {
  gearman_client_st *client = gearman_client_create(NULL);
  if (client == NULL || gearman_client_add_server(client, host, port) != GEARMAN_SUCCESS) fail("no client");
  gearman_client_add_options(client, GEARMAN_CLIENT_FREE_TASKS);
  gearman_client_set_complete_fn(client, completed);
  gearman_client_set_fail_fn(client, failed);
  int in_flight, milliseconds;
  while (scanf("%d %zu %d", &in_flight, &bytes, &milliseconds) == 3) {
    payload = realloc(payload, bytes);
    memset(payload, 'x', bytes);
    jobs = 0;
    const double begin = now();
    deadline = begin + milliseconds / 1e3;
    while (in_flight-- > 0) submit(client);
    if (gearman_client_run_tasks(client) != GEARMAN_SUCCESS) fail(gearman_client_error(client));
    printf("%lu %.6f\n", jobs, now() - begin);
    fflush(stdout);
  }
}

/* libgearman sends pending registrations when it looks for a job. Without one, it returns at once. */
static void flush_functions(gearman_worker_st *worker) {
  gearman_return_t outcome = gearman_worker_work(worker);
  for (; outcome == GEARMAN_IO_WAIT; outcome = gearman_worker_work(worker)) gearman_worker_wait(worker);
  if (outcome != GEARMAN_NO_JOBS && outcome != GEARMAN_NO_REGISTERED_FUNCTIONS) fail(gearman_worker_error(worker));
}

static void serve_functions(const char *host, in_port_t port) {
  gearman_worker_st *worker = NULL;
  char order[16], name[32];
  int count;
  while (scanf("%15s %d", order, &count) == 2) {
    const int registers = strcmp(order, "register") == 0;
    if (registers) {
      /* libgearman 1.1.20 crashes if it registers a function that it has unregistered before. */
      if (worker != NULL) gearman_worker_free(worker);
      worker = new_worker(host, port);
      gearman_worker_add_options(worker, GEARMAN_WORKER_NON_BLOCKING);
    }
    for (int index = 0; index < count; index += 1) {
      snprintf(name, sizeof name, "function-%d", index);
      if (registers) define(worker, name);
      else if (gearman_worker_unregister(worker, name) != GEARMAN_SUCCESS) fail(gearman_worker_error(worker));
    }
    flush_functions(worker);
    puts("ok");
    fflush(stdout);
  }
}

int main(int count, char **arguments) {
  if (count < 4) fail("usage: libgearman worker|client|functions HOST PORT [FUNCTION]");
  const char *role = arguments[1], *host = arguments[2];
  const in_port_t port = atoi(arguments[3]);
  function = arguments[4];
  if (strcmp(role, "worker") == 0) work(host, port);
  else if (strcmp(role, "client") == 0) serve_client(host, port);
  else serve_functions(host, port);
  return 0;
}
