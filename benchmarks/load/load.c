/* An HTTP/1.1 load generator: prepared requests over kept-alive connections, and what came back as one line of JSON.
 *
 *   load --host H --port P --file F [--connections N] [--offset K] [--fresh K] [--learn S] [--warm S] [--seconds S | --count N]
 *        [--rate R] [--second P]
 *
 * The file holds requests one behind the other, each as a line `class length` and so many bytes. A connection walks through
 * the file from a place of its own, so that each carries the file's mixture of classes; --offset moves them all. With --fresh
 * every request is for a user of its own, numbered from K on: the seven digits behind `userId=` or `"userId":"` are rewritten. The program
 * connects, with --learn asks every request once, within S seconds, and adds If-None-Match with the tag of its answer
 * (requests without one are left out), warms for S seconds, writes `ready`, waits for a line on standard input, and measures. With
 * --second every other connection goes to that port.
 *
 * Without a rate the loop is closed: a connection asks again once it was answered, and latency counts from sending. With a rate
 * it is open: request i is due at start + i / rate and latency counts from there, also while it waited for a free connection,
 * so that a server that stalls is charged with every request that was due meanwhile. What is outstanding at the end is awaited
 * and counted. Latencies are kept in a histogram of 32 steps for every doubling, an error below 1.6 per cent. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 16384, READ = 1 << 18, CLASSES = 8, STEPS = 64, BUCKETS = STEPS * 40, CONNECTIONS = 4096, PATIENCE = 60 };
enum phase { IDLE, HEADERS, SIZED, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER };

struct request { char *bytes; size_t length; int class; char *digits; };
struct connection {
    int fd;
    enum phase phase;
    size_t request, used, line;  /* index of the request; bytes of the head; bytes of the present chunk line or trailer */
    int64_t left;                /* bytes of the body or chunk that are still to come */
    uint64_t since;              /* when the request was due, ns */
    int status;
    bool encoded, last;          /* the answer has a Content-Encoding; the server closes afterwards */
    char head[HEAD];
};
struct histogram { uint64_t buckets[BUCKETS], count, largest; };
struct tally { uint64_t requests, bytes, statuses[600], encoded, broken, closed, sent; struct histogram latency[CLASSES]; };

static struct request *requests;
static size_t request_count;
static struct connection *connections;
static int connection_count = 32, poller, timer;
static struct sockaddr_in addresses[2];
static struct tally tally;
static char etag[1024], scratch[READ];
static double seconds = 1, warm = 0, learn = -1, rate = 0;
static uint64_t count = 0;
static int64_t fresh = -1;

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- histogram: one bucket for each ns below STEPS, STEPS / 2 buckets for every doubling above */

static int bucket_of(uint64_t value) {
    if (value < STEPS) return (int)value;
    int shift = 63 - __builtin_clzll(value) - 5;
    int index = shift * (STEPS / 2) + (int)(value >> shift);
    return index < BUCKETS ? index : BUCKETS - 1;
}

static double value_of(int bucket) {
    if (bucket < STEPS) return bucket;
    int shift = bucket / (STEPS / 2) - 1;
    return ((double)(bucket - shift * (STEPS / 2)) + 0.5) * (double)(1ull << shift);
}

static void record(struct histogram *histogram, uint64_t value) {
    histogram->buckets[bucket_of(value)]++;
    histogram->count++;
    if (value > histogram->largest) histogram->largest = value;
}

static double percentile(const struct histogram *histogram, double share) {
    uint64_t wanted = (uint64_t)(share * (double)histogram->count + 0.999999), seen = 0;
    if (wanted < 1) wanted = 1;
    for (int at = 0; at < BUCKETS; at++)
        if ((seen += histogram->buckets[at]) >= wanted) {
            double value = value_of(at);
            return (value < (double)histogram->largest ? value : (double)histogram->largest) / 1000.0;
        }
    return 0;
}

/* ---- requests and connections */

/* Where the number of the user is, NULL where there is none of seven digits. */
static char *digits_of(char *bytes, size_t length) {
    static const char *marks[] = {"userId=", "\"userId\":\""};
    for (int at = 0; at < 2; at++) {
        char *found = memmem(bytes, length, marks[at], strlen(marks[at]));
        if (!found) continue;
        found += strlen(marks[at]);
        if (found + 7 <= bytes + length && strspn(found, "0123456789") == 7) return found;
    }
    return NULL;
}

static void renumber(char *digits) {
    int64_t number = 1000000 + fresh++ % 9000000;
    for (int at = 6; at >= 0; at--, number /= 10) digits[at] = (char)('0' + number % 10);
}

static void read_requests(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail("cannot read `%s`: %s", path, strerror(errno));
    size_t room = 0, length;
    int class;
    while (fscanf(file, "%d %zu", &class, &length) == 2) {
        if (request_count == room) requests = realloc(requests, (room = room ? 2 * room : 1024) * sizeof *requests);
        if (class < 0 || class >= CLASSES || fgetc(file) != '\n') fail("request %zu of `%s` is malformed", request_count, path);
        char *bytes = calloc(length + 1, 1);
        if (fread(bytes, 1, length, file) != length) fail("request %zu of `%s` is cut off", request_count, path);
        requests[request_count++] = (struct request){bytes, length, class, digits_of(bytes, length)};
    }
    if (!feof(file) || !request_count) fail("`%s` holds no requests, or something else behind them", path);
    fclose(file);
}

static void open_connection(struct connection *connection) {
    struct sockaddr_in *address = &addresses[(connection - connections) % 2];
    int one = 1;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)address, sizeof *address))
        fail("cannot connect to port %d: %s", ntohs(address->sin_port), strerror(errno));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->fd, &event)) fail("epoll: %s", strerror(errno));
    connection->phase = IDLE;
}

static void reopen(struct connection *connection) {
    close(connection->fd);
    open_connection(connection);
}

static void broken(struct connection *connection, uint64_t *counter) {
    (*counter)++;
    reopen(connection);
}

static void send_next(struct connection *connection, uint64_t since) {
    const struct request *request = &requests[connection->request];
    size_t sent = 0;
    connection->phase = HEADERS;
    connection->used = 0;
    connection->since = since;
    tally.sent++;
    if (fresh >= 0 && request->digits) renumber(request->digits);
    while (sent < request->length) {
        ssize_t done = send(connection->fd, request->bytes + sent, request->length - sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            broken(connection, &tally.closed);
            return;
        }
        sent += (size_t)done;
    }
}

/* ---- answers: each function takes what it understands of the bytes and gives how many, or -1 where they are no HTTP */

static const char *header(const char *line, const char *name) {
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) || line[length] != ':') return NULL;
    return line + length + 1 + strspn(line + length + 1, " \t");
}

static bool begin_body(struct connection *connection) {
    bool chunked = false;
    int64_t length = -1;
    const char *value;
    connection->encoded = connection->last = false;
    etag[0] = 0;
    connection->head[connection->used - 2] = 0;
    if (sscanf(connection->head, "HTTP/1.1 %3d", &connection->status) != 1 || connection->status < 200) return false;
    if (connection->status > 599) return false;
    for (char *line = strstr(connection->head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
        if ((value = header(line + 2, "content-length"))) length = strtoll(value, NULL, 10);
        if ((value = header(line + 2, "transfer-encoding"))) chunked = !strncasecmp(value, "chunked", 7);
        if (header(line + 2, "content-encoding")) connection->encoded = true;
        if ((value = header(line + 2, "connection"))) connection->last = !strncasecmp(value, "close", 5);
        if ((value = header(line + 2, "etag"))) sscanf(value, "%1023[^\r]", etag);
    }
    connection->left = connection->status == 304 || connection->status == 204 ? 0 : length;
    connection->line = 0;
    connection->phase = chunked && connection->left ? CHUNK_SIZE : SIZED;
    return connection->phase == CHUNK_SIZE || connection->left >= 0;
}

static ssize_t take_head(struct connection *connection, const char *data, size_t size) {
    for (size_t at = 0; at < size; at++) {
        if (connection->used == HEAD) return -1;
        connection->head[connection->used++] = data[at];
        if (data[at] == '\n' && connection->used >= 4 && !memcmp(connection->head + connection->used - 4, "\r\n\r\n", 4))
            return begin_body(connection) ? (ssize_t)at + 1 : -1;
    }
    return (ssize_t)size;
}

static ssize_t take_line(struct connection *connection, const char *data, size_t size) {
    for (size_t at = 0; at < size; at++) {
        if (connection->line == HEAD - 1) return -1;
        connection->head[connection->line++] = data[at];
        if (data[at] != '\n') continue;
        connection->head[connection->line] = 0;
        bool empty = connection->line == 2;
        connection->line = 0;
        if (connection->phase == CHUNK_SIZE) {
            char *end;
            connection->left = strtoll(connection->head, &end, 16);
            if (end == connection->head || connection->left < 0) return -1;
            connection->phase = connection->left ? CHUNK_DATA : TRAILER;
        } else if (connection->phase == CHUNK_END) {
            if (!empty) return -1;
            connection->phase = CHUNK_SIZE;
        } else if (empty) {
            connection->phase = SIZED;
            connection->left = 0;
        }
        return (ssize_t)at + 1;
    }
    return (ssize_t)size;
}

static ssize_t take_body(struct connection *connection, size_t size) {
    size_t taken = (int64_t)size < connection->left ? size : (size_t)connection->left;
    connection->left -= (int64_t)taken;
    if (!connection->left && connection->phase == CHUNK_DATA) connection->phase = CHUNK_END;
    return (ssize_t)taken;
}

/* Take what has arrived; whether the answer is complete. Bytes behind it are an error: nothing else was asked. */
static bool receive(struct connection *connection, const char *data, size_t size, bool *wrong) {
    while (true) {
        if (connection->phase == SIZED && !connection->left) {
            *wrong = size > 0;
            return true;
        }
        if (!size) return false;
        ssize_t taken = connection->phase == HEADERS ? take_head(connection, data, size)
            : connection->phase == SIZED || connection->phase == CHUNK_DATA ? take_body(connection, size)
            : take_line(connection, data, size);
        if (connection->phase == IDLE || taken < 0) {
            *wrong = true;
            return true;
        }
        data += taken;
        size -= (size_t)taken;
    }
}

/* Read once; whether the connection has become free: answered, or failed and opened again. */
static bool readable(struct connection *connection) {
    ssize_t size = recv(connection->fd, scratch, sizeof scratch, MSG_DONTWAIT);
    bool wrong = false;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size == 0 && connection->phase == IDLE) {
        reopen(connection);  /* the server's idle time-out, and no fault of it */
        return true;
    }
    if (size <= 0) {
        broken(connection, &tally.closed);
        return true;
    }
    tally.bytes += (uint64_t)size;
    if (!receive(connection, scratch, (size_t)size, &wrong)) return false;
    if (wrong) {
        broken(connection, &tally.broken);
        return true;
    }
    tally.requests++;
    tally.statuses[connection->status]++;
    tally.encoded += connection->encoded;
    record(&tally.latency[requests[connection->request].class], now() - connection->since);
    connection->phase = IDLE;
    if (connection->last) reopen(connection);
    return true;
}

/* ---- the loops */

static void wake_at(uint64_t due) {
    struct itimerspec spec = {.it_value = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* Ask for `span` seconds, or until `most` requests are sent, then wait for what is outstanding. */
static void run(double span, uint64_t most, double per_second) {
    static int idle[CONNECTIONS];
    struct epoll_event events[256];
    uint64_t start = now(), end = start + (uint64_t)(span * 1e9), due = start, begun = 0;
    int idles = 0, busy = 0;
    for (int at = connection_count - 1; at >= 0; at--) idle[idles++] = at;
    while (true) {
        uint64_t time = now();
        bool over = most ? begun >= most : per_second > 0 ? due >= end : time >= end;
        if (over && !busy) break;
        if (time > end + PATIENCE * 1000000000ull) fail("%d answers did not come within %d s", busy, PATIENCE);
        while (!over && idles && (per_second <= 0 || due <= time)) {
            struct connection *connection = &connections[idle[--idles]];
            send_next(connection, per_second > 0 ? due : now());
            if (connection->phase == IDLE) idle[idles++] = (int)(connection - connections);
            else busy++;
            begun++;
            if (per_second > 0) due = start + (uint64_t)((double)begun / per_second * 1e9);
            over = most ? begun >= most : per_second > 0 ? due >= end : false;
        }
        if (!over && per_second > 0 && idles) wake_at(due);
        int ready = epoll_wait(poller, events, 256, 1000);
        for (int at = 0; at < ready; at++) {
            struct connection *connection = events[at].data.ptr;
            if (!connection) {
                uint64_t expirations;
                if (read(timer, &expirations, sizeof expirations) < 0) continue;
            } else if (connection->phase == IDLE) {
                readable(connection);  /* an idle connection has something to read: the server closed it, or speaks unasked */
            } else if (readable(connection)) {
                connection->request = (connection->request + 1) % request_count;
                idle[idles++] = (int)(connection - connections);
                busy--;
            }
        }
    }
}

/* Ask each request once and let it remember the tag of its answer; those without one are dropped. */
static void learn_tags(double span) {
    struct connection *connection = &connections[0];
    uint64_t end = now() + (uint64_t)(span * 1e9);
    struct epoll_event event;
    size_t kept = 0;
    for (size_t at = 0; at < request_count && now() < end; at++) {
        connection->request = at;
        etag[0] = 0;
        send_next(connection, now());
        while (connection->phase != IDLE && epoll_wait(poller, &event, 1, PATIENCE * 1000) > 0 && !readable(connection)) {}
        if (!etag[0]) continue;
        struct request *old = &requests[at];
        char *end_of_head = memmem(old->bytes, old->length, "\r\n\r\n", 4);
        size_t head = (size_t)(end_of_head - old->bytes) + 2, length = old->length + strlen(etag) + 17;
        char *bytes = malloc(length + 1);
        memcpy(bytes, old->bytes, head);
        sprintf(bytes + head, "If-None-Match: %s\r\n", etag);
        memcpy(bytes + length - (old->length - head), old->bytes + head, old->length - head);
        requests[kept++] = (struct request){bytes, length, old->class, NULL};
    }
    if (!(request_count = kept)) fail("no answer has an entity tag");
}

/* ---- the beginning and the end */

static void print_latency(const struct histogram *histogram) {
    static const double shares[] = {0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999};
    static const char *names[] = {"50", "75", "90", "95", "99", "99.5", "99.9", "99.99"};
    printf("{\"count\": %llu", (unsigned long long)histogram->count);
    for (int at = 0; at < 8; at++) printf(", \"%s\": %.2f", names[at], percentile(histogram, shares[at]));
    printf(", \"100\": %.2f}", (double)histogram->largest / 1000.0);
}

static void print_result(double taken) {
    const char *comma = "";
    printf("{\"requests\": %llu, \"sent\": %llu, \"seconds\": %.6f, \"bytes\": %llu, \"encoded\": %llu, \"broken\": %llu, \"closed\": %llu,"
           " \"prepared\": %zu, \"statuses\": {",
           (unsigned long long)tally.requests, (unsigned long long)tally.sent, taken, (unsigned long long)tally.bytes,
           (unsigned long long)tally.encoded, (unsigned long long)tally.broken, (unsigned long long)tally.closed, request_count);
    for (int status = 0; status < 600; status++)
        if (tally.statuses[status]) {
            printf("%s\"%d\": %llu", comma, status, (unsigned long long)tally.statuses[status]);
            comma = ", ";
        }
    comma = "}, \"latency\": {";
    for (int class = 0; class < CLASSES; class++)
        if (tally.latency[class].count) {
            printf("%s\"%d\": ", comma, class);
            print_latency(&tally.latency[class]);
            comma = ", ";
        }
    printf("%s}}\n", *comma == '}' ? "}, \"latency\": {" : "");
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1", *file = NULL;
    int port = 0, second = 0;
    size_t offset = 0;
    for (int at = 1; at + 1 < argc; at += 2) {
        const char *name = argv[at], *value = argv[at + 1];
        if (!strcmp(name, "--host")) host = value;
        else if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--second")) second = atoi(value);
        else if (!strcmp(name, "--file")) file = value;
        else if (!strcmp(name, "--connections")) connection_count = atoi(value);
        else if (!strcmp(name, "--offset")) offset = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--fresh")) fresh = atoll(value);
        else if (!strcmp(name, "--learn")) learn = atof(value);
        else if (!strcmp(name, "--warm")) warm = atof(value);
        else if (!strcmp(name, "--seconds")) seconds = atof(value);
        else if (!strcmp(name, "--count")) count = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--rate")) rate = atof(value);
        else fail("unknown option `%s`", name);
    }
    if (!file || !port || connection_count < 1 || connection_count > CONNECTIONS || argc % 2 == 0)
        fail("needs --port, --file, at most %d connections, and a value for each option", CONNECTIONS);
    addresses[0] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &addresses[0].sin_addr) != 1) fail("`%s` is no IPv4 address", host);
    addresses[1] = addresses[0];
    if (second) addresses[1].sin_port = htons((uint16_t)second);
    read_requests(file);
    poller = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    connections = calloc((size_t)connection_count, sizeof *connections);
    for (int at = 0; at < connection_count; at++) open_connection(&connections[at]);
    if (learn >= 0) learn_tags(learn);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    for (int at = 0; at < connection_count; at++)
        connections[at].request = (offset + request_count * (size_t)at / (size_t)connection_count) % request_count;
    if (warm > 0) run(warm, 0, 0);
    memset(&tally, 0, sizeof tally);
    char line[16];
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
    uint64_t start = now();
    run(count ? 86400 : seconds, count, rate);
    print_result((double)(now() - start) / 1e9);
    return 0;
}
