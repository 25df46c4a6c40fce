# Davidson's model of ties by psychotools, for the tests, from the files in data/ alone.
#
# Usage, from the top of the repository:
#   Rscript tests/reference/davidson_reference.R > tests/reference/davidson.json

suppressPackageStartupMessages(library("psychotools"))

# Rows of a paircomp object are respondents, its columns the pairs (1, 2), (1, 3), (2, 3), ...
read_survey <- function(file, items) {
  rows <- read.csv(file.path("data", file), na.strings = "")
  people <- unique(rows$respondent)
  pairs <- which(upper.tri(diag(length(items))), arr.ind = TRUE)
  answers <- matrix(NA_integer_, length(people), nrow(pairs))
  first <- match(rows$item1, items)
  second <- match(rows$item2, items)
  turned <- ifelse(first < second, 1L, -1L)
  column <- match(
    paste(pmin(first, second), pmax(first, second)),
    paste(pairs[, 1], pairs[, 2])
  )
  answers[cbind(match(rows$respondent, people), column)] <- turned * as.integer(rows$outcome)
  paircomp(answers, labels = items, mscale = -1:1)
}

reference <- function(file, items) {
  fit <- btmodel(
    read_survey(file, items),
    type = "loglin", undecided = TRUE, ref = items[1],
    epsilon = 1e-15, maxit = 100
  )
  worths <- itempar(fit, ref = seq_along(items), log = TRUE, vcov = FALSE)
  # win, tie and loss are as e^(d / 2) : e^undecided : e^(-d / 2)
  undecided <- unname(coef(fit, ref = FALSE)["(undecided)"])
  list(
    params = as.list(setNames(as.numeric(worths), items)),
    undecided = undecided,
    loglik = as.numeric(logLik(fit))
  )
}

# Worths by gender with one tie parameter: the log-linear model that btmodel fits, with the counts
# of both groups at once. And the groups by themselves, each with a tie parameter of its own.
by_gender <- function(file, students, items) {
  people <- read.csv(file.path("data", students))
  rows <- unique(read.csv(file.path("data", file), na.strings = "")$respondent)
  answers <- read_survey(file, items)
  gender <- factor(people$gender[match(rows, people$respondent)], c("female", "male"))
  pairs <- which(upper.tri(diag(length(items))), arr.ind = TRUE)
  blocks <- list()
  for (group in levels(gender)) for (k in seq_len(nrow(pairs))) {
    # of a pair: first preferred, undecided, second preferred
    counts <- summary(answers[gender == group])[k, 1:3]
    step <- diag(length(items))[pairs[k, ], ]
    worths <- rbind(step[1, ], colMeans(step), step[2, ])[, -1]
    nuisance <- matrix(0, 3, 2 * nrow(pairs))
    nuisance[, k + (group == "male") * nrow(pairs)] <- 1
    blocks[[length(blocks) + 1]] <- list(
      y = as.numeric(counts),
      x = cbind(worths, worths * (group == "male"), c(0, 1, 0), nuisance)
    )
  }
  y <- unlist(lapply(blocks, `[[`, "y"))
  x <- do.call(rbind, lapply(blocks, `[[`, "x"))
  fit <- suppressWarnings(
    glm.fit(x, y, family = poisson(), control = glm.control(epsilon = 1e-15, maxit = 100))
  )
  free <- length(items) - 1
  centred <- function(b) setNames(as.list(c(0, b) - mean(c(0, b))), items)
  cells <- matrix(fit$fitted.values, nrow = 3)
  loglik <- sum(matrix(y, nrow = 3) * log(sweep(cells, 2, colSums(cells), "/")))
  alone <- sapply(levels(gender), function(group) {
    as.numeric(logLik(btmodel(
      answers[gender == group],
      type = "loglin", undecided = TRUE, epsilon = 1e-15, maxit = 100
    )))
  })
  b <- unname(fit$coefficients)
  list(
    params = centred(b[seq_len(free)]), male = centred(b[free + seq_len(free)]),
    undecided = b[2 * free + 1], loglik = loglik, loglik_alone = as.list(alone)
  )
}

cat(jsonlite::toJSON(
  list(
    meta = list(
      made_by = "tests/reference/davidson_reference.R",
      R = as.character(getRversion()),
      psychotools = as.character(packageVersion("psychotools")),
      call = "btmodel(type = 'loglin', undecided = TRUE)"
    ),
    university = reference(
      "university.csv",
      c("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
    ),
    university_gender = by_gender(
      "university.csv", "university_students.csv",
      c("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
    ),
    immigration = reference(
      "immigration.csv",
      c("crimRate", "position", "socBurd", "culture")
    )
  ),
  auto_unbox = TRUE, digits = NA, pretty = TRUE
), "\n", sep = "")
